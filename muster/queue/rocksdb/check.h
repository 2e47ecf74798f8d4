// Checks every stored record of an embedded queue store, and mends it.
//
//   damaged or missing      a repair
//   store record            is made again: ids of messages change, leases of before end
//   queue record            the queue is called "recovered-N" and keeps its messages
//   counters                are made again of what is there
//   state, of a sound body  is made again: the message is ready, and a suspect
//   body                    the message is taken away; its item is put again by its batch's run
//   cause of a poison       is made again, and says so
//   body of a poison        the message is taken away
//   dedup record            is taken away
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/base/clock.h"
#include "muster/os/quarantine.h"
#include "muster/queue/queue_store.h"

namespace rocksdb {
class Env;
}  // namespace rocksdb

namespace muster::queue::rocksdb {

struct QueueCheckOptions {
  os::CheckOptions check;
  std::string account;           // of a queue whose own record is damaged
  base::Clock* clock = nullptr;  // not owned
  // What a sound body must hold beside its bytes; an error says what is wrong. Unset: anything.
  std::function<absl::Status(const queue::QueueId&, absl::string_view body)> check_body;
  ::rocksdb::Env* env = nullptr;  // not owned; nullptr = the machine's
};

// NotFound: there is no store. FailedPrecondition: a process has it open, or a newer muster wrote
// it. DataLoss: it cannot be looked at, which the findings were told.
absl::StatusOr<os::CheckSummary> CheckQueues(const std::string& dir,
                                             const QueueCheckOptions& options);

}  // namespace muster::queue::rocksdb
