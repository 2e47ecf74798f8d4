// Reads a store's queues and messages into memory: what an open does.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "muster/queue/rocksdb/durable_queue.h"
#include "muster/queue/rocksdb/storage.h"

namespace muster::queue::rocksdb {

// By queue number.
using LoadedQueues = absl::flat_hash_map<uint64_t, std::shared_ptr<DurableQueue>>;

// DataLoss when a queue's own record is damaged (its messages would be nobody's), or when RocksDB
// cannot read on. A damaged state record is loaded as such.
// `holders_are_gone`: leases that were alive end now (Options::holders_in_process).
absl::StatusOr<LoadedQueues> LoadQueues(Storage* storage, bool holders_are_gone);

}  // namespace muster::queue::rocksdb
