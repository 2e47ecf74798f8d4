// SPDX-License-Identifier: Apache-2.0
#include "muster/release/combined_release.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/retry.h"
#include "muster/base/status.h"

namespace muster::release {
namespace {

constexpr double kJitter = 0.2;

}  // namespace

CombinedRelease::CombinedRelease(absl::string_view name, sync::OptimisticSyncStore* store,
                                 base::Clock* clock, CombinedReleaseOptions options)
    : name_(name),
      store_(store),
      clock_(clock),
      safety_interval_(options.safety_interval),
      uniform_(std::move(options.uniform)) {}

// Subscribes before anything is read, so that no release falls between the two.
absl::StatusOr<std::unique_ptr<CombinedRelease>> CombinedRelease::Open(
    absl::string_view name, sync::OptimisticSyncStore* store, bus::TriggerBus* bus,
    base::Clock* clock, CombinedReleaseOptions options) {
  MUSTER_RETURN_IF_ERROR(ValidateName(name));
  std::unique_ptr<CombinedRelease> release(
      new CombinedRelease(name, store, clock, std::move(options)));
  MUSTER_ASSIGN_OR_RETURN(
      release->subscription_,
      bus->Subscribe([self = release.get()](const auto& event) { self->OnEvent(event); }));
  return release;
}

void CombinedRelease::OnEvent(const bus::InterRoleCommunicationEvent& event) {
  const auto* const released = std::get_if<bus::ReleasedEvent>(&event.payload);
  if (released == nullptr || released->release != name_) return;
  base::MutexLock lock(&mu_);
  hinted_ = true;
  changed_.NotifyAll();
}

absl::StatusOr<ReleaseState> CombinedRelease::Wait(const std::stop_token& stop) {
  const std::stop_callback wake(stop, base::WakeAll{&mu_, &changed_});
  base::MutexLock lock(&mu_);
  while (!end_.has_value()) {
    if (stop.stop_requested()) {
      return absl::CancelledError(absl::StrCat("the wait for release '", name_, "' was stopped"));
    }
    const absl::Duration due = reading_ ? absl::InfiniteDuration() : DueLocked();
    if (clock_->Monotonic() >= due) {
      ReadLocked();
    } else {
      clock_->WaitUntil(&changed_, &mu_, due);
    }
  }
  return *end_;
}

absl::Duration CombinedRelease::DueLocked() const {
  if (failures_ > 0) {
    const int failures = hinted_ ? 1 : failures_;  // an event is a sign of life
    return read_at_ + base::ExponentialBackoff(failures, kFirstBackoff, safety_interval_);
  }
  if (!hinted_) return check_at_;
  if (in_vain_ == 0) return read_at_;
  return std::min(check_at_,
                  read_at_ + base::ExponentialBackoff(in_vain_, kFirstBackoff, safety_interval_));
}

void CombinedRelease::ReadLocked() {
  reading_ = true;
  const bool was_hinted = std::exchange(hinted_, false);  // an event from now on asks for another
  mu_.Unlock();
  const absl::StatusOr<ReleaseState> read = Read();
  mu_.Lock();
  reading_ = false;
  NoteLocked(read, was_hinted);
  changed_.NotifyAll();
}

absl::StatusOr<ReleaseState> CombinedRelease::Read() {
  MUSTER_ASSIGN_OR_RETURN(const sync::VersionedData stored, store_->Get(kReleasesKey));
  return StateIn(stored.data, name_);
}

void CombinedRelease::NoteLocked(const absl::StatusOr<ReleaseState>& read, bool was_hinted) {
  read_at_ = clock_->Monotonic();
  check_at_ = read_at_ + safety_interval_ * (1 - kJitter + 2 * kJitter * uniform_());
  if (!read.ok()) {
    if (!base::IsTransient(read.status())) {
      end_ = base::Annotate(read.status(), absl::StrCat("release '", name_, "'"));
      return;
    }
    if (++failures_ > 1) return;
    base::Log(base::kWarning, "the record of a release cannot be read; it is tried again",
              {{"release", name_}, {"why", read.status().ToString()}});
    return;
  }
  failures_ = 0;
  const bool is_first = epoch_ == 0;
  if (is_first) epoch_ = read->armed_epoch;
  if (read->LetsGo(epoch_)) {
    end_ = *read;
  } else {
    in_vain_ = was_hinted && !is_first ? in_vain_ + 1 : 0;
  }
}

int64_t CombinedRelease::epoch() const {
  base::MutexLock lock(&mu_);
  return epoch_;
}

}  // namespace muster::release
