// SPDX-License-Identifier: Apache-2.0

// LoadQueues: reads the queues of a store into memory when the store opens: their records and
// counters, the state of each message, and which dead letters there are. Bodies stay on the disk
// until they are asked for. codec.h draws the records.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "muster/queue/rocksdb/durable_queue.h"
#include "muster/queue/rocksdb/storage.h"

namespace muster::queue::rocksdb {

// Keyed by queue number.
using LoadedQueues = absl::flat_hash_map<uint64_t, std::shared_ptr<DurableQueue>>;

// The queues use `storage`, which is not owned and outlives them. `holders_are_gone`: live leases
// end now (Options::holders_in_process). Call it once for a storage, before any other use of it.
//
// DataLoss when the record of a queue is damaged, because its messages would then have no queue, or
// when RocksDB cannot read on. A damaged state record is loaded as damaged.
absl::StatusOr<LoadedQueues> LoadQueues(Storage* storage, bool holders_are_gone);

}  // namespace muster::queue::rocksdb
