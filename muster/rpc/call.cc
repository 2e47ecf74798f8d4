#include "muster/rpc/call.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/rpc/limits.h"

namespace muster::rpc {

absl::Status RefuseIfLate(absl::Time deadline, absl::Time now) {
  if (now < deadline) return absl::OkStatus();
  return absl::DeadlineExceededError(absl::StrCat("the call's deadline had passed ",
                                                  absl::FormatDuration(now - deadline),
                                                  " before work on it could begin"));
}

absl::Status WithAdvice(absl::Status status) {
  if (RetryAfter(status).has_value()) return status;
  if (absl::IsUnavailable(status)) return WithRetryAfter(std::move(status), kRetryUnavailable);
  if (absl::IsResourceExhausted(status)) return WithRetryAfter(std::move(status), kRetryExhausted);
  return status;
}

}  // namespace muster::rpc
