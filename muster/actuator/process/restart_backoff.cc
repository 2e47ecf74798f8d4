// SPDX-License-Identifier: Apache-2.0
#include "muster/actuator/process/restart_backoff.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/actuator/process/limits.h"
#include "muster/base/quantity.h"

namespace muster::actuator::process {

RestartBackoff::RestartBackoff() : backoff_({.maximum = kMaxRestartWait}) {}

void RestartBackoff::OnFailure(absl::Duration ran, std::string why, absl::Duration now) {
  Fail(ran < kWellAfter, std::move(why), now);
}

void RestartBackoff::OnRefusal(absl::Status why, absl::Duration now) {
  Fail(true, std::string(why.message()), now);
  refusal_ = std::move(why);
}

void RestartBackoff::OnStart(absl::Duration now) {
  refusal_ = absl::OkStatus();
  next_start_ = now;
}

void RestartBackoff::Fail(bool in_a_row, std::string why, absl::Duration now) {
  why_ = std::move(why);
  failed_at_ = now;
  if (WaitAt(now) > absl::ZeroDuration()) return;
  failures_ = in_a_row ? failures_ + 1 : 1;
  next_start_ = now + backoff_.Interval(failures_);
}

absl::Duration RestartBackoff::WaitAt(absl::Duration now) const {
  return std::max(absl::ZeroDuration(), next_start_ - now);
}

std::string RestartBackoff::Tell(absl::Duration now) const {
  const absl::Duration wait = WaitAt(now);
  if (why_.empty() || (now - failed_at_ >= kWellAfter && wait == absl::ZeroDuration())) return "";
  std::string text = absl::StrCat("the last failure of ", failures_, " in a row: ", why_);
  if (wait > absl::ZeroDuration()) {
    absl::StrAppend(&text, "; the next start is in ",
                    base::DurationToString(absl::Ceil(wait, absl::Milliseconds(1))));
  }
  return text;
}

}  // namespace muster::actuator::process
