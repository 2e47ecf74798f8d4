// What all handlers outside of this process have in common, whatever the form in which items go to
// them and answers come back: docs/command_handlers.md and docs/grpc_handlers.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/handler/handler.h"

namespace muster::handler {

// Of why an item was not processed, so much is kept.
inline constexpr size_t kMaxWhyBytes = 512;
// What a handler may ask an item to wait: longer than any message lives in a queue.
inline constexpr absl::Duration kMaxRetryDelay = absl::Hours(7 * 24);

// A transaction with a field that is not UTF-8 cannot be told in text: rejects it, and answers
// true.
bool RejectUnlessUtf8(const JobSchema& schema, const Transaction& transaction, Results& results);

// `why` as it is kept: printable, and cut.
std::string PrintableReason(absl::string_view why);

// The lines of an item that a handler may reject, each once: those that it was sent. Not
// thread-safe.
class OpenLines {
 public:
  // `item` and `results` are not owned. What `results` holds already was not sent.
  OpenLines(const WorkItem& item, Results* results);

  // InvalidArgument: no line of the item, or rejected before.
  absl::Status Reject(int64_t line, absl::string_view reason);

 private:
  Results* const results_;  // not owned
  absl::flat_hash_map<int64_t, const Transaction*> open_;
};

// Ok, once rows and rejections are in `results`: all other transactions count. Internal when the
// verdicts do not work out.
absl::StatusOr<Outcome> ConcludeOk(Results& results);

}  // namespace muster::handler
