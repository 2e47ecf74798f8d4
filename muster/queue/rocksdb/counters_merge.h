// Lets every batch say what it adds to a queue's counters without reading them: batches that commit
// side by side need no order among themselves.
#pragma once

#include <memory>

#include "rocksdb/merge_operator.h"

namespace muster::queue::rocksdb {

// Merges Counters records (codec.h): sums, and the larger next_seq. A damaged operand counts as
// nothing: counters are figures for people, and must not cost a message.
std::shared_ptr<::rocksdb::MergeOperator> MakeCountersMerge();

}  // namespace muster::queue::rocksdb
