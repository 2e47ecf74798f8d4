#include "muster/rocksdb/slice.h"

#include "absl/base/attributes.h"

namespace muster::rocksdb {

// Not inlined, so that it is a frame of its own in what a sanitizer reports.
ABSL_ATTRIBUTE_NOINLINE std::string Copy(const ::rocksdb::Slice& slice) { return slice.ToString(); }

}  // namespace muster::rocksdb
