// SPDX-License-Identifier: Apache-2.0
#include "muster/stream/processor/session.h"

#include "absl/strings/str_cat.h"

namespace muster::stream::processor {

absl::string_view CloseReasonName(CloseReason reason) {
  switch (reason) {
    case CloseReason::kHandedOver:
      return "handed over";
    case CloseReason::kShutdown:
      return "shutdown";
    case CloseReason::kReplayed:
      return "replayed";
    case CloseReason::kLost:
      break;
  }
  return "lost";
}

absl::string_view OperationName(ProcessorError::Operation operation) {
  switch (operation) {
    case ProcessorError::Operation::kOpen:
      return "open";
    case ProcessorError::Operation::kRead:
      return "read";
    case ProcessorError::Operation::kHandle:
      return "handle";
    case ProcessorError::Operation::kRetention:
      return "retention";
    case ProcessorError::Operation::kBeyondEnd:
      return "beyond end";
    case ProcessorError::Operation::kLost:
      return "lost";
    case ProcessorError::Operation::kMembership:
      break;
  }
  return "membership";
}

absl::Status Session::UpdateCheckpoint(const Event& event) {
  if (!owned()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "partition ", partition(), " is not owned under epoch ", epoch(), " any more"));
  }
  const absl::Status saved =
      setup_.source.checkpoints->Save(partition(), epoch(),
                                      {.offset = event.offset + 1,
                                       .sequence = event.offset,
                                       .replays = source_.replays(),
                                       .incarnation = source_.incarnation()});
  // Aborted, too, where other writers were first again and again: looking once more does no harm.
  if (absl::IsAborted(saved)) setup_.on_replay(this);
  // Another thread may have saved a later one, and be here first.
  int64_t before = saved_;
  while (saved.ok() && before <= event.offset &&
         !saved_.compare_exchange_weak(before, event.offset + 1)) {
  }
  return saved;
}

}  // namespace muster::stream::processor
