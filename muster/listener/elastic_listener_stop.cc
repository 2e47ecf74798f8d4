// How an ElasticListener stands aside, and how it ends.
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/listener/elastic_listener.h"
#include "muster/listener/verdict.h"

namespace muster::listener {

void ElasticListener::Pause() {
  base::MutexLock lock(&phase_mu_);
  if (phase_ == Phase::kStopping || phase_ == Phase::kStopped) return;
  paused_ = true;
  roster_.Dismiss();
}

void ElasticListener::Resume() {
  base::MutexLock lock(&phase_mu_);
  if (phase_ == Phase::kStopping || phase_ == Phase::kStopped) return;
  if (!std::exchange(paused_, false)) return;
  roster_.Recall();
  // Tasks that were too busy to notice the pause look again; if there are none, some must start.
  if (roster_.Wake(1) == 0 && phase_ == Phase::kStarted) supervisor_.Wake(WakeReason::kPush);
}

absl::Status ElasticListener::Stop(absl::Duration grace) {
  absl::Status status;
  {
    base::MutexLock lock(&stop_mu_);
    if (std::exchange(stopped_, true)) return stop_status_;
    status = stop_status_ = StopOnce(grace);
  }
  if (events_.on_completed) events_.on_completed();
  return status;
}

// Senders before receivers: nothing new arrives while what is in hand is brought to its end.
absl::Status ElasticListener::StopOnce(absl::Duration grace) {
  absl::Status status;
  const absl::Duration deadline = clock_->Monotonic() + grace;
  StopSenders();
  ReleaseUnbegun();
  if (!options_.stops_patiently) leases_.StopAll();
  if (!roster_.AwaitNone(deadline) || !settler_.Drain(deadline)) {
    status = absl::DeadlineExceededError(
        absl::StrCat("stopping took longer than ", absl::FormatDuration(grace), "; ",
                     leases_.unsettled(), " messages are left to their leases"));
    settler_.Cancel();
    renewer_.Stop();
    leases_.StopAll();
  }
  JoinTasks();
  settler_.Cancel();
  renewer_.Stop();
  base::MutexLock lock(&phase_mu_);
  phase_ = Phase::kStopped;
  return status;
}

void ElasticListener::StopSenders() {
  std::unique_ptr<bus::TriggerBus::Subscription> subscription;
  {
    base::MutexLock lock(&phase_mu_);
    phase_ = Phase::kStopping;
    roster_.Dismiss();
    subscription = std::move(subscription_);
  }
  subscription.reset();
  stopping_.request_stop();
  leases_.AbortWaits();
  supervisor_.Stop();
}

void ElasticListener::ReleaseUnbegun() {
  Settlement release;
  release.kind = Settlement::Kind::kRelease;
  std::vector<Settler::Item> items;
  for (LeasePtr& lease : leases_.ReleaseUnbegun()) {
    const int attempts = lease->message.attempts;
    Verdict verdict = Judge(release, attempts, false, environment_.rules, 0);
    if (leases_.charged(*lease)) verdict = Refunded(std::move(verdict));
    items.push_back({std::move(lease), std::move(verdict), attempts});
  }
  if (!items.empty()) settler_.Settle(std::move(items));
}

void ElasticListener::JoinTasks() {
  // Whoever has entered the roster also gets its thread.
  roster_.AwaitNone(absl::InfiniteDuration());
  threads_.Join();
}

}  // namespace muster::listener
