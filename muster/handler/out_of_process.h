// SPDX-License-Identifier: Apache-2.0

// What all handlers outside of this process share, whether items travel as JSON lines or over gRPC:
// docs/command_handlers.md and docs/grpc_handlers.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/handler/handler.h"

namespace muster::handler {

// The most that is kept of the reason why an item was not processed.
inline constexpr size_t kMaxWhyBytes = 512;
// The longest wait that a handler may ask for an item: longer than any message lives in a queue.
inline constexpr absl::Duration kMaxRetryDelay = absl::Hours(7 * 24);

// Rejects a transaction with a field that is not UTF-8, which no text form can hold. Returns
// whether it rejected it.
bool RejectUnlessUtf8(const JobSchema& schema, const Transaction& transaction, Results& results);

// `why` made printable, and cut.
std::string PrintableReason(absl::string_view why);

// The lines of an item that were sent to the handler; it may reject each of them once. Not
// thread-safe.
class OpenLines {
 public:
  // `item` and `results` are not owned. Lines that `results` already holds were not sent.
  OpenLines(const WorkItem& item, Results* results);

  // InvalidArgument: no line of the item, or rejected before.
  absl::Status Reject(int64_t line, absl::string_view reason);

  // Call after the last Reject. InvalidArgument: no line of the item, or a rejected one.
  // OutOfRange: the record does not fit its columns, or in the room that an item's records have.
  // `fields` are one for each column.
  absl::Status AddOutput(int64_t line, std::vector<std::string> fields);

 private:
  Results* const results_;  // not owned
  absl::flat_hash_map<int64_t, const Transaction*> open_;
};

// Call with rows and rejections in `results`: counts all other transactions and returns Ok.
// Internal when the verdicts do not add up.
absl::StatusOr<Outcome> ConcludeOk(Results& results);

}  // namespace muster::handler
