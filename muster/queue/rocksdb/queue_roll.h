// QueueCatalog: the queues that a check finds in an embedded store: what their own records say, and
// what their messages show of them. A record of a queue that is lost is made again of the latter.
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
#include "muster/os/damage.h"
#include "muster/queue/rocksdb/codec.h"
#include "muster/queue/rocksdb/storage.h"
#include "muster/rocksdb/workbench.h"

namespace muster::queue::rocksdb {

// What is known of a queue, and what its messages show.
struct QueueFacts {
  QueueRecord record;
  std::optional<Counters> counters;
  std::string damaged_counters;  // as stored
  int64_t messages = 0;          // with poison
  uint64_t next_seq = 0;         // behind the last that was seen
};

// Read, then whatever finds messages, then Finish. Errors are the workbench's. Not thread-safe.
class QueueCatalog {
 public:
  // `session` is not owned. `account` is that of a queue whose own record is lost.
  QueueCatalog(muster::rocksdb::RepairSession* session, std::string account, int64_t now_us)
      : session_(session), account_(std::move(account)), now_us_(now_us) {}

  // The records of queues, their counters and the store. FailedPrecondition: a newer muster wrote
  // them.
  absl::Status Read();
  // The queue of a record that was found. nullptr: there is none; but where the record shows that
  // there was one, it is recovered.
  absl::StatusOr<QueueFacts*> Find(uint64_t number, absl::FunctionRef<bool()> shows_it_was_there);
  void NoteLease(uint64_t lease) { last_lease_ = std::max(last_lease_, lease); }
  // Holds counters and the store's record against all that was found.
  absl::Status Finish();

  std::string NameOf(const QueueFacts& queue, const MessageAddress& message) const;
  static std::string NameOf(const QueueFacts& queue);
  // Tells of a record that is of no use, and takes it away.
  absl::Status RemoveDamaged(FamilyIndex family, absl::string_view key, absl::string_view value,
                             std::string name, std::string why);

 private:
  absl::Status ReadRecord(absl::string_view key, absl::string_view value);
  absl::Status ReadQueue(absl::string_view key, absl::string_view value);
  // Gives queue `number` a record with another name.
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
