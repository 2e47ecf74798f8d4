// SPDX-License-Identifier: Apache-2.0

// Checks every stored record of an embedded queue store, and repairs it.
//
//   damaged or missing      repair
//   store record            rebuilt: message ids change, earlier leases end
//   queue record            rebuilt: the queue is called "recovered-N" and keeps its messages
//   counters                rebuilt from the messages that are there
//   state, of a sound body  rebuilt: the message is ready, and a suspect
//   body                    the message is removed; the run of its batch puts its item again
//   cause of a poison       rebuilt; the new cause says so
//   body of a poison        the message is removed
//   dedup record            removed
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
  std::string account;           // given to a queue with a damaged record
  base::Clock* clock = nullptr;  // not owned
  // Validates the content of a body with a correct checksum; an error says what is wrong. Unset:
  // accepts any content.
  std::function<absl::Status(const queue::QueueId&, absl::string_view body)> check_body;
  ::rocksdb::Env* env = nullptr;  // not owned; nullptr = the machine's
};

// NotFound: there is no store. FailedPrecondition: a process has it open, or a newer muster wrote
// it. DataLoss: the store cannot be read; the findings say so.
absl::StatusOr<os::CheckSummary> CheckQueues(const std::string& dir,
                                             const QueueCheckOptions& options);

}  // namespace muster::queue::rocksdb
