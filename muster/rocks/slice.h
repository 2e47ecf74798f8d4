// Between RocksDB's view of bytes and Abseil's.
#pragma once

#include "absl/strings/string_view.h"
#include "rocksdb/slice.h"

namespace muster::rocks {

inline rocksdb::Slice ToSlice(absl::string_view text) { return {text.data(), text.size()}; }
inline absl::string_view ToView(const rocksdb::Slice& slice) {
  return {slice.data(), slice.size()};
}

}  // namespace muster::rocks
