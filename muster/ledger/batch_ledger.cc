#include "muster/ledger/batch_ledger.h"

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace muster::ledger {
namespace {

// The payload of an UnknownToAll.
constexpr char kUnknownToAll[] = "muster/batch-unknown-to-all";

}  // namespace

absl::string_view BatchStateName(BatchState state) {
  switch (state) {
    case BatchState::kOpen:
      return "open";
    case BatchState::kSealed:
      return "sealed";
    case BatchState::kComplete:
      return "complete";
    case BatchState::kCancelled:
      return "cancelled";
  }
  return "unknown";
}

absl::Status UnknownToAll(uint64_t batch, size_t asked) {
  absl::Status status = absl::UnavailableError(
      absl::StrCat("none of the ", asked, " initiators that are known has batch ", batch));
  status.SetPayload(kUnknownToAll, absl::Cord("1"));
  return status;
}

bool IsUnknownToAll(const absl::Status& status) {
  return status.GetPayload(kUnknownToAll).has_value();
}

}  // namespace muster::ledger
