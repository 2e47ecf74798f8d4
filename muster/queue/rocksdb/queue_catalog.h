// SPDX-License-Identifier: Apache-2.0

// QueueCatalog: the queues that a check finds in an embedded store, from their own records and from
// their messages. It rebuilds a lost queue record from the messages.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/os/quarantine.h"
#include "muster/queue/rocksdb/codec.h"
#include "muster/queue/rocksdb/storage.h"
#include "muster/rocksdb/repair_session.h"

namespace muster::queue::rocksdb {

// What a check knows of a queue: its own records, and what its messages show.
struct QueueFacts {
  QueueRecord record;
  std::optional<Counters> counters;
  std::string damaged_counters;  // as stored
  int64_t messages = 0;          // with poison
  uint64_t next_seq = 0;         // one after the last that was seen
};

// Call Read first, then Find and NoteLease for each message, then Finish. Returns the errors of
// `session`. Not thread-safe.
class QueueCatalog {
 public:
  // `session` is not owned. `account`: the account given to queues with a lost record.
  QueueCatalog(muster::rocksdb::RepairSession* session, std::string account, int64_t now_us)
      : session_(session), account_(std::move(account)), now_us_(now_us) {}

  // Reads the records of queues, their counters and the store record. FailedPrecondition: a newer
  // muster wrote them.
  absl::Status Read();
  // Returns the queue of a record that was found. If the queue is unknown: recovers it when
  // `shows_it_was_there` returns true, otherwise returns nullptr.
  absl::StatusOr<QueueFacts*> Find(uint64_t number, absl::FunctionRef<bool()> shows_it_was_there);
  void NoteLease(uint64_t lease) { last_lease_ = std::max(last_lease_, lease); }
  // Checks the counters and the store record against all messages that were found.
  absl::Status Finish();

  std::string NameOf(const QueueFacts& queue, const MessageAddress& message) const;
  static std::string NameOf(const QueueFacts& queue);
  // Reports a useless record and removes it.
  absl::Status RemoveDamaged(FamilyIndex family, absl::string_view key, absl::string_view value,
                             std::string name, std::string why);

 private:
  absl::Status ReadRecord(absl::string_view key, absl::string_view value);
  absl::Status ReadQueue(absl::string_view key, absl::string_view value);
  // Writes a record with a new name for queue `number`.
  absl::Status Recover(uint64_t number, std::string why, std::vector<os::StoredRecord> records);
  absl::Status AddCounters(uint64_t number, const std::string& value);
  absl::Status CheckStore();
  absl::Status CheckCounters(uint64_t number, const QueueFacts& queue);

  muster::rocksdb::RepairSession* const session_;  // not owned
  const std::string account_;
  const int64_t now_us_;
  std::map<uint64_t, QueueFacts> queues_;
  std::optional<StoreRecord> store_;
  std::string damaged_store_;  // as stored
  uint64_t last_queue_ = 0;
  uint64_t last_lease_ = 0;
};

}  // namespace muster::queue::rocksdb
