// SPDX-License-Identifier: Apache-2.0

// How an idle ElasticListener notices work: triggers, open receives and checks; and how it starts
// tasks for it.
#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "muster/base/retry.h"
#include "muster/base/status.h"
#include "muster/listener/elastic_listener.h"

namespace muster::listener {
namespace {

// So long a trigger waits for the message that an open receive may bring: then the listener looks
// at the depth only if none came, or if more is there than its tasks can take.
constexpr absl::Duration kReceiveHeadStart = absl::Milliseconds(10);
// After a receive could not be kept open: doubles, up to the safety check's interval.
constexpr absl::Duration kReopenAfter = absl::Seconds(1);

}  // namespace

void ElasticListener::OnTrigger(const bus::InterRoleCommunicationEvent& event) {
  const auto* work = std::get_if<bus::CloudQueueWorkDetectedTriggerEvent>(&event.payload);
  if (work == nullptr) return;
  if (!partitions_.contains(queue::QueueId{work->storage_account, work->queue_name})) return;
  counters_.Add(&ListenerCounters::triggers_heard);
  if (handover_.IsForOthers(work->wanted)) return;
  const int64_t messages =
      work->messages > 0 ? work->messages : std::numeric_limits<int64_t>::max();
  pushed_at_ =
      absl::ToInt64Nanoseconds(clock_->Monotonic());  // before the wake: a later look counts
  // Wakes idle tasks first. Busy tasks find the work when they look next, but they may be too few.
  if (roster_.Wake(messages) == 0) {
    if (open_receives_.cover_all()) {
      supervisor_.WakeIn(kReceiveHeadStart, WakeReason::kPushLater);
    } else {
      supervisor_.Wake(WakeReason::kPush);
    }
  } else if (roster_.has_idle_hands()) {
    supervisor_.Wake(WakeReason::kRescale);
  }
}

void ElasticListener::OnWake(WakeReason reason) {
  if (reason == WakeReason::kAnnounce) return handover_.AnnounceDue();
  if (roster_.dismissed()) return;
  if (reason == WakeReason::kIdle || reason == WakeReason::kReopen) {
    return WaitIfIdle(reason == WakeReason::kReopen);
  }
  if (roster_.active() == 0) {
    // A task that the open receive started has found the queue empty since the trigger.
    const bool looked = reason == WakeReason::kPushLater && looked_at_ >= pushed_at_;
    if (!looked) WakeIdle(reason);
    WaitIfIdle(reason == WakeReason::kSafety);
  } else if (reason == WakeReason::kRescale) {
    RaiseWorkDetected();
  } else {
    WakeBusy(reason);
  }
}

void ElasticListener::RaiseWorkDetected() {
  if (events_.queue_work_detected) {
    events_.queue_work_detected(*this);
  } else if (roster_.has_idle_hands()) {
    Rescale(gauge_.Look());
  }
}

// All tasks may be busy for long: then none of them sees newly visible messages, and more tasks
// must start.
void ElasticListener::WakeBusy(WakeReason reason) {
  // Also keeps a task that looked too early from leaving.
  if (reason == WakeReason::kScheduled) roster_.Wake(1);
  if (!roster_.has_idle_hands()) return;
  const Depth depth = gauge_.Look();
  if (depth.ready > 0) FollowDepth(depth);
}

void ElasticListener::FollowDepth(const Depth& depth) {
  if (events_.queue_work_detected) {
    events_.queue_work_detected(*this);
  } else {
    Rescale(depth);
  }
}

void ElasticListener::WakeIdle(WakeReason reason) {
  const Depth depth = gauge_.Look();
  // What others hold comes to an open receive when it is given back or its lease runs out.
  if (depth.ready > 0 || (!depth.known && !open_receives_.cover_all())) {
    counters_.Add(reason == WakeReason::kSafety      ? &ListenerCounters::wakeups_safety
                  : reason == WakeReason::kScheduled ? &ListenerCounters::wakeups_scheduled
                                                     : &ListenerCounters::wakeups_push);
    FollowDepth(depth);
  }
  if (KeepsPoller() && roster_.active() == 0) StartTasks(1);
}

bool ElasticListener::KeepsPoller() const {
  return options_.mode == DispatchMode::kPull && !events_.queue_empty;
}

void ElasticListener::Rescale(const Depth& depth) {
  if (!depth.known && depth.ready == 0) {
    if (roster_.active() == 0) StartTasks(kFallbackTasks);
    return;
  }
  if (depth.ready == 0) return;
  // Sleepers count as active, so wake them before starting more tasks.
  const int active = roster_.Wake(depth.ready);
  const int wanted = std::max(kFallbackTasks, options_.work_rule(depth.ready)) - active;
  if (wanted <= 0) return;
  // A task without messages will take one by itself.
  const int64_t unattended = depth.ready - roster_.CountOnEmptyHands();
  StartTasks(static_cast<int>(std::min<int64_t>(wanted, unattended)));
}

void ElasticListener::StartTasks(int wanted) {
  if (wanted <= 0) return;
  const int entered = roster_.Enter(wanted);
  for (int started = 0; started < entered; ++started) {
    const int first = next_first_partition_.fetch_add(1) & std::numeric_limits<int>::max();
    const absl::Status status = StartTask(first, nullptr);
    if (status.ok()) continue;
    for (int missing = started; missing < entered; ++missing) roster_.Leave();
    return TellNotStarted(status);
  }
}

void ElasticListener::TellNotStarted(const absl::Status& why) {
  const bool is_workless = roster_.active() == 0;
  if (is_workless && events_.on_no_task) {
    events_.on_no_task(why);
  } else {
    on_error_(why);
  }
}

absl::Status ElasticListener::StartTask(int first_partition,
                                        std::shared_ptr<ArrivedMessage> first) {
  return threads_.Start([this, first_partition, first = std::move(first)] {
    meter_.TaskBegan();
    std::optional<ArrivedMessage> arrived;
    if (first != nullptr) arrived = std::move(*first);
    DequeueTask(environment_, first_partition).Run(std::move(arrived));
    meter_.TaskEnded();
    if (open_receives_.can_wait() && roster_.active() == 0) supervisor_.Wake(WakeReason::kIdle);
  });
}

bool ElasticListener::OnMessage(int partition, queue::Message message) {
  failed_receives_ = 0;
  if (roster_.Enter(1) == 0) return false;
  const bool was_idle = roster_.active() == 1;
  auto arrived = std::make_shared<ArrivedMessage>(
      ArrivedMessage{partition, std::move(message), clock_->Monotonic()});
  if (const absl::Status started = StartTask(partition, std::move(arrived)); !started.ok()) {
    roster_.Leave();
    TellNotStarted(started);
    return false;
  }
  counters_.Add(&ListenerCounters::receives_useful);
  if (was_idle) counters_.Add(&ListenerCounters::wakeups_push);
  return true;
}

void ElasticListener::OnReceiveEnd(const absl::Status& why) {
  counters_.Add(absl::IsNotFound(why) ? &ListenerCounters::receives_empty
                                      : &ListenerCounters::receives_failed);
  if (absl::IsNotFound(why)) {
    failed_receives_ = 0;
    supervisor_.Wake(WakeReason::kIdle);
  } else if (absl::IsAborted(why)) {
    supervisor_.Wake(WakeReason::kPush);
  } else {
    const int failures = failed_receives_.fetch_add(1);
    if (failures == 0) on_error_(base::Annotate(why, "keeping a receive open"));
    supervisor_.WakeIn(
        base::ExponentialBackoff(failures + 1, kReopenAfter, options_.safety_check_interval),
        WakeReason::kReopen);
  }
}

void ElasticListener::WaitIfIdle(bool retry) {
  if (!open_receives_.can_wait() || roster_.active() > 0 || handover_.StaysAway()) return;
  {
    base::MutexLock lock(&phase_mu_);
    if (phase_ != Phase::kStarted) return;
  }
  open_receives_.Open(gauge_.last_seen(), retry);
  // A pause, or a message for others, may have come meanwhile, and has closed less than this.
  if (roster_.dismissed() || handover_.StaysAway()) open_receives_.Close();
}

}  // namespace muster::listener
