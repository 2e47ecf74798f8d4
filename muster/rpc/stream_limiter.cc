// SPDX-License-Identifier: Apache-2.0
#include "muster/rpc/stream_limiter.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "grpc/grpc.h"
#include "muster/base/check.h"
#include "muster/base/quantity.h"
#include "muster/rpc/status.h"

namespace muster::rpc {

void EndCall(grpc::ServerContextBase* context, const absl::Status& status) {
  const grpc::Status sent = ToGrpc(status);
  grpc_call_cancel_with_status(context->c_call(), static_cast<grpc_status_code>(sent.error_code()),
                               sent.error_message().c_str(), nullptr);
}

StreamLimiter::Place::~Place() {
  base::MutexLock lock(&limiter_->mu_);
  limiter_->places_.erase(this);
  if (!ended_) --limiter_->taken_;
}

void StreamLimiter::Place::Waits() {
  base::MutexLock lock(&limiter_->mu_);
  waits_since_ = limiter_->clock_->Monotonic();
}

void StreamLimiter::Place::Goes() {
  base::MutexLock lock(&limiter_->mu_);
  waits_since_.reset();
}

void StreamLimiter::Place::Stir() {
  base::MutexLock lock(&limiter_->mu_);
  if (waits_since_.has_value()) waits_since_ = limiter_->clock_->Monotonic();
}

StreamLimiter::StreamLimiter(std::string what, StreamLimits limits, base::Clock* clock)
    : what_(std::move(what)), limits_(limits), clock_(clock) {}

StreamLimiter::~StreamLimiter() {
  std::thread thread;
  {
    base::MutexLock lock(&mu_);
    MUSTER_CHECK(places_.empty(), places_.size(), " ", what_, " outlive their limiter");
    stopping_ = true;
    changed_.NotifyAll();
    thread = std::move(thread_);
  }
  if (thread.joinable()) thread.join();
}

absl::StatusOr<std::unique_ptr<StreamLimiter::Place>> StreamLimiter::Admit(End end) {
  base::MutexLock lock(&mu_);
  if (taken_ >= limits_.max_streams) {
    Place* const longest = LongestLocked();
    const bool yields =
        longest != nullptr && clock_->Monotonic() - *longest->waits_since_ >= limits_.yields_after;
    if (!yields) {
      return absl::UnavailableError(
          absl::StrCat(what_, ": all ", limits_.max_streams, " places are taken; try again"));
    }
    EndLocked(longest, absl::UnavailableError(
                           absl::StrCat(what_, ": the place of an idle stream goes to another")));
  }
  auto place = std::make_unique<Place>(this, std::move(end));
  places_.insert(place.get());
  ++taken_;
  if (!thread_.joinable() && limits_.max_idle < absl::InfiniteDuration()) {
    thread_ = std::thread([this] { Run(); });
  }
  if (places_.size() == 1) changed_.NotifyAll();
  return place;
}

StreamLimiter::Place* StreamLimiter::LongestLocked() const {
  Place* longest = nullptr;
  for (Place* const place : places_) {
    if (place->ended_ || !place->waits_since_.has_value()) continue;
    if (longest == nullptr || *place->waits_since_ < *longest->waits_since_) longest = place;
  }
  return longest;
}

// The stream's thread cannot destroy the place, and with it its call, while the lock is held.
void StreamLimiter::EndLocked(Place* place, const absl::Status& why) {
  MUSTER_CHECK(!place->ended_ && taken_ > 0, what_, ": ended ", place->ended_, ", taken ", taken_);
  place->ended_ = true;
  --taken_;
  place->end_(why);
}

absl::Duration StreamLimiter::EndIdleLocked() {
  const absl::Duration now = clock_->Monotonic();
  for (;;) {
    Place* const longest = LongestLocked();
    // A wait that begins later also ends later.
    if (longest == nullptr) return now + limits_.max_idle;
    const absl::Duration ends = *longest->waits_since_ + limits_.max_idle;
    if (ends > now) return ends;
    EndLocked(longest,
              absl::UnavailableError(absl::StrCat(what_, ": nothing came for ",
                                                  base::DurationToString(limits_.max_idle))));
  }
}

void StreamLimiter::Run() {
  base::MutexLock lock(&mu_);
  while (!stopping_) {
    const absl::Duration next = EndIdleLocked();
    clock_->WaitUntil(&changed_, &mu_, places_.empty() ? absl::InfiniteDuration() : next);
  }
}

}  // namespace muster::rpc
