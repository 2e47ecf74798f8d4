#include "muster/rpc/call.h"

#include "absl/strings/str_cat.h"

namespace muster::rpc {

absl::Status RefuseIfLate(absl::Time deadline, absl::Time now) {
  if (now < deadline) return absl::OkStatus();
  return absl::DeadlineExceededError(absl::StrCat("the call's deadline had passed ",
                                                  absl::FormatDuration(now - deadline),
                                                  " before work on it could begin"));
}

}  // namespace muster::rpc
