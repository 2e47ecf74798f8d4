// SPDX-License-Identifier: Apache-2.0
#include "muster/handler/health_troubles.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/text.h"

namespace muster::handler {

void HealthTroubles::Note(absl::string_view why) {
  std::string printable = base::Printable(why, kMaxTroubleBytes);
  base::MutexLock lock(&mu_);
  why_ = std::move(printable);
  works_ = false;
}

void HealthTroubles::NoteItems(absl::string_view why) { Note(absl::StrCat(kItemsFailed, why)); }

void HealthTroubles::Works() {
  base::MutexLock lock(&mu_);
  why_.clear();
  works_ = has_worked_ = true;
}

void HealthTroubles::NoteSlow(uint64_t call, absl::string_view why) {
  std::string printable = base::Printable(why, kMaxTroubleBytes);
  base::MutexLock lock(&mu_);
  slow_.insert_or_assign(call, std::move(printable));
}

void HealthTroubles::EndSlow(uint64_t call) {
  base::MutexLock lock(&mu_);
  slow_.erase(call);
}

void HealthTroubles::NoteFailing(absl::string_view why) {
  std::string printable = base::Printable(why, kMaxTroubleBytes);
  base::MutexLock lock(&mu_);
  failing_ = std::move(printable);
}

void HealthTroubles::EndFailing() {
  base::MutexLock lock(&mu_);
  failing_.clear();
}

bool HealthTroubles::is_failing() const {
  base::MutexLock lock(&mu_);
  return !failing_.empty();
}

void HealthTroubles::SetProbe(Probe probe) {
  base::MutexLock lock(&mu_);
  probe_ = std::move(probe);
}

std::string HealthTroubles::why() const {
  Probe probe;
  {
    base::MutexLock lock(&mu_);
    if (!why_.empty()) return why_;
    if (!failing_.empty()) return failing_;
    if (!slow_.empty()) return slow_.begin()->second;
    if (probe_ == nullptr) return "";
    probe = probe_;
  }
  return base::Printable(probe(), kMaxTroubleBytes);
}

bool HealthTroubles::has_worked() const {
  base::MutexLock lock(&mu_);
  return has_worked_;
}

bool HealthTroubles::works() const {
  base::MutexLock lock(&mu_);
  return works_;
}

}  // namespace muster::handler
