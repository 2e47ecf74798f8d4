// SPDX-License-Identifier: Apache-2.0
#include "muster/handler/health.h"

#include <utility>

#include "muster/base/text.h"

namespace muster::handler {

void HealthIssues::Note(absl::string_view why) {
  std::string printable = base::Printable(why, kMaxIssueBytes);
  base::MutexLock lock(&mu_);
  why_ = std::move(printable);
  works_ = false;
}

void HealthIssues::Works() {
  base::MutexLock lock(&mu_);
  why_.clear();
  works_ = has_worked_ = true;
}

void HealthIssues::NoteSlow(uint64_t call, absl::string_view why) {
  std::string printable = base::Printable(why, kMaxIssueBytes);
  base::MutexLock lock(&mu_);
  slow_.insert_or_assign(call, std::move(printable));
}

void HealthIssues::EndSlow(uint64_t call) {
  base::MutexLock lock(&mu_);
  slow_.erase(call);
}

void HealthIssues::NoteFailing(absl::string_view why) {
  std::string printable = base::Printable(why, kMaxIssueBytes);
  base::MutexLock lock(&mu_);
  failing_ = std::move(printable);
}

void HealthIssues::EndFailing() {
  base::MutexLock lock(&mu_);
  failing_.clear();
}

bool HealthIssues::is_failing() const {
  base::MutexLock lock(&mu_);
  return !failing_.empty();
}

void HealthIssues::SetProbe(Probe probe) {
  base::MutexLock lock(&mu_);
  probe_ = std::move(probe);
}

std::string HealthIssues::why() const {
  Probe probe;
  {
    base::MutexLock lock(&mu_);
    if (!why_.empty()) return why_;
    if (!failing_.empty()) return failing_;
    if (!slow_.empty()) return slow_.begin()->second;
    if (probe_ == nullptr) return "";
    probe = probe_;
  }
  return base::Printable(probe(), kMaxIssueBytes);
}

bool HealthIssues::has_worked() const {
  base::MutexLock lock(&mu_);
  return has_worked_;
}

bool HealthIssues::works() const {
  base::MutexLock lock(&mu_);
  return works_;
}

}  // namespace muster::handler
