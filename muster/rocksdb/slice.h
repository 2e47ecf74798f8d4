// Between RocksDB's view of bytes and Abseil's.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "rocksdb/slice.h"

namespace muster::rocksdb {

inline ::rocksdb::Slice ToSlice(absl::string_view text) { return {text.data(), text.size()}; }
inline absl::string_view ToView(const ::rocksdb::Slice& slice) {
  return {slice.data(), slice.size()};
}

// What an iterator stands on lies in memory that RocksDB writes to beside it. ThreadSanitizer,
// which does not see how RocksDB orders the two, is told to look away from this copy, and from
// nothing that is done with it.
std::string Copy(const ::rocksdb::Slice& slice);

}  // namespace muster::rocksdb
