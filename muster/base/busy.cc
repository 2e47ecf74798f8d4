#include "muster/base/busy.h"

#include "absl/strings/cord.h"

namespace muster::base {
namespace {

constexpr char kBusy[] = "muster/busy";

}  // namespace

absl::Status Busy(absl::string_view message) {
  absl::Status status = absl::FailedPreconditionError(message);
  status.SetPayload(kBusy, absl::Cord());
  return status;
}

bool IsBusy(const absl::Status& status) { return status.GetPayload(kBusy).has_value(); }

}  // namespace muster::base
