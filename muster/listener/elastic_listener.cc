// ElasticListener: starting, waking, handing over and stopping.

#include "muster/listener/elastic_listener.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/random.h"
#include "muster/base/status.h"
#include "muster/listener/verdict.h"

namespace muster::listener {

namespace {

std::function<void(const absl::Status&)> OrLog(std::function<void(const absl::Status&)> on_error) {
  if (on_error) return on_error;
  return [](const absl::Status& status) {
    base::Log(base::kWarning, "listener error", {{"status", status.ToString()}});
  };
}

VerdictRules RulesOf(const ListenerOptions& options) {
  return {.max_attempts = options.max_attempts,
          .minimum_retry_delay = options.minimum_retry_delay,
          .maximum_retry_delay = options.maximum_retry_delay,
          .has_output_queue = options.output_queue.has_value()};
}

}  // namespace

ElasticListener::ElasticListener(ListenerOptions options, ListenerEvents events,
                                 SubscriberFactory subscribers, queue::QueueStore* store,
                                 bus::TriggerBus* bus, base::Clock* clock)
    : options_(std::move(options)),
      events_(std::move(events)),
      store_(store),
      bus_(bus),
      clock_(clock),
      on_error_(OrLog(events_.on_error)),
      partitions_(options_.partitions.begin(), options_.partitions.end()),
      meter_(clock),
      dequeue_batch_size_(options_.dequeue_batch_size),
      max_dequeue_tasks_(options_.max_dequeue_tasks),
      retry_(base::RetryOptions(), clock),
      sizer_(options_.claim_horizon),
      roster_(clock, options_.max_dequeue_tasks),
      visibility_(options_.visibility, options_.maximum_visibility),
      leases_(clock, options_.max_unsettled_messages, &counters_),
      triggers_(bus, options_.instance, &counters_),
      handover_(&triggers_, clock),
      idle_intervals_{options_.minimum_idle_interval, options_.maximum_idle_interval},
      gauge_(options_.partitions, store, &leases_, &counters_, on_error_),
      environment_(MakeEnvironment(std::move(subscribers))),
      supervisor_({.safety_check_interval = options_.safety_check_interval}, clock,
                  base::SeededUniform(base::RandomSeed()),
                  [this](WakeReason reason) { OnWake(reason); }),
      settler_(
          {.partitions = options_.partitions,
           .output_queue = options_.output_queue,
           .pack_outputs = options_.pack_outputs,
           .holder = options_.instance,
           .linger = options_.settle_linger,
           .on_delayed = [this](absl::Duration delay) { supervisor_.WakeIn(delay); },
           .on_left_to_others = [this](
                                    const queue::QueueId& queue, const std::string& wanted,
                                    absl::Duration delay) { LeaveToOthers(queue, wanted, delay); },
           .on_settled = [this](const Lease& lease, bool in_time) { OnSettled(lease, in_time); },
           .on_error = on_error_},
          store, &leases_, &triggers_, &counters_, clock),
      renewer_({.partitions = options_.partitions, .on_error = on_error_}, store, &leases_,
               &counters_, clock) {}

ElasticListener::~ElasticListener() { Stop(absl::InfiniteDuration()).IgnoreError(); }

void ElasticListener::OnSettled(const Lease& lease, bool in_time) {
  if (in_time) {
    visibility_.Observe(clock_->Monotonic() - lease.received_at);
  } else {
    visibility_.ObserveLost();
  }
}

TaskEnvironment ElasticListener::MakeEnvironment(SubscriberFactory subscribers) {
  TaskEnvironment environment{.options = &options_,
                              .rules = RulesOf(options_),
                              .store = store_,
                              .clock = clock_,
                              .retry = &retry_,
                              .visibility = &visibility_,
                              .leases = &leases_,
                              .settler = &settler_,
                              .roster = &roster_,
                              .sizer = &sizer_,
                              .counters = &counters_,
                              .meter = &meter_,
                              .supervisor = &supervisor_,
                              .stopping = stopping_.get_token(),
                              .on_error = on_error_,
                              .queue_empty = nullptr,
                              .subscribers = std::move(subscribers),
                              .dequeue_batch_size = &dequeue_batch_size_,
                              .idle_intervals = [this] { return IdleIntervals(); }};
  if (events_.queue_empty) {
    environment.queue_empty = [this](int idle_count) {
      return events_.queue_empty(*this, idle_count);
    };
  }
  return environment;
}

absl::Status ElasticListener::Start() {
  base::MutexLock lock(&phase_mu_);
  if (phase_ != Phase::kNew) {
    return absl::FailedPreconditionError("the listener was started or stopped before");
  }
  if (bus_ != nullptr) {
    MUSTER_ASSIGN_OR_RETURN(
        subscription_,
        bus_->Subscribe([this](const bus::InterRoleCommunicationEvent& e) { OnTrigger(e); }));
  }
  phase_ = Phase::kStarted;
  supervisor_.Start();
  return absl::OkStatus();
}

absl::Status ElasticListener::StartListener(int thread_count) {
  if (thread_count <= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("StartListener(", thread_count, "): the number of tasks must be positive"));
  }
  if (roster_.dismissed()) {
    return absl::FailedPreconditionError("the listener is paused or stopped");
  }
  StartTasks(thread_count);
  return absl::OkStatus();
}

ListenerInfo ElasticListener::QueryState() const {
  ListenerInfo info;
  info.current_queue_depth = gauge_.Look().ready;
  info.active_dequeue_tasks = roster_.active();
  info.total_dequeue_tasks = roster_.most_active();
  info.unsettled_messages = leases_.unsettled();
  return info;
}

ListenerLoad ElasticListener::Load() const {
  ListenerLoad load;
  load.max_dequeue_tasks = roster_.max_tasks();
  load.times = meter_.Read();
  const std::vector<int64_t> leased = leases_.LeasedByPartition(options_.partitions.size());
  const std::vector<queue::QueueStats> seen = gauge_.last_seen();
  for (size_t i = 0; i < seen.size(); ++i) {
    load.partitions.push_back(
        {options_.partitions[i], seen[i].ready, seen[i].oldest_age, leased[i]});
  }
  return load;
}

absl::Status ElasticListener::SetDequeueBatchSize(int messages) {
  MUSTER_RETURN_IF_ERROR(ValidateBatchSize(messages, store_->traits()));
  dequeue_batch_size_ = messages;
  return absl::OkStatus();
}

absl::Status ElasticListener::SetIdleIntervals(absl::Duration minimum, absl::Duration maximum) {
  MUSTER_RETURN_IF_ERROR(ValidateIdleIntervals(minimum, maximum));
  base::MutexLock lock(&settings_mu_);
  idle_intervals_ = {minimum, maximum};
  return absl::OkStatus();
}

absl::Status ElasticListener::SetMaxDequeueTasks(int tasks) {
  MUSTER_RETURN_IF_ERROR(ValidateMaxDequeueTasks(tasks));
  max_dequeue_tasks_ = tasks;
  roster_.SetMaxTasks(tasks);
  // All tasks may be busy, while more work waits than they can do.
  if (roster_.active() > 0 && roster_.has_idle_hands()) supervisor_.Wake(WakeReason::kRescale);
  return absl::OkStatus();
}

ListenerOptions ElasticListener::options() const {
  ListenerOptions options = options_;
  options.dequeue_batch_size = dequeue_batch_size_;
  options.max_dequeue_tasks = max_dequeue_tasks_;
  const base::IdleBackoffOptions idle = IdleIntervals();
  options.minimum_idle_interval = idle.minimum;
  options.maximum_idle_interval = idle.maximum;
  return options;
}

ListenerPhase ElasticListener::phase() const {
  base::MutexLock lock(&phase_mu_);
  switch (phase_) {
    case Phase::kNew:
    case Phase::kStarted:
      break;
    case Phase::kStopping:
      return ListenerPhase::kDraining;
    case Phase::kStopped:
      return ListenerPhase::kStopped;
  }
  return paused_ ? ListenerPhase::kPaused : ListenerPhase::kListening;
}

base::IdleBackoffOptions ElasticListener::IdleIntervals() const {
  base::MutexLock lock(&settings_mu_);
  return idle_intervals_;
}

void ElasticListener::LeaveToOthers(const queue::QueueId& queue, const std::string& wanted,
                                    absl::Duration delay) {
  handover_.OnPutBack(queue, wanted, delay);
  supervisor_.WakeIn(delay, WakeReason::kAnnounce);
}

void ElasticListener::OnTrigger(const bus::InterRoleCommunicationEvent& event) {
  const auto* work = std::get_if<bus::CloudQueueWorkDetectedTriggerEvent>(&event.payload);
  if (work == nullptr) return;
  if (!partitions_.contains(queue::QueueId{work->storage_account, work->queue_name})) return;
  counters_.Add(&ListenerCounters::triggers_heard);
  if (handover_.IsForOthers(work->wanted)) return;
  const int64_t messages =
      work->payload_size > 0 ? work->payload_size : std::numeric_limits<int64_t>::max();
  // Wakes idle tasks first. Busy tasks find the work when they look next, but they may be too few.
  if (roster_.Wake(messages) == 0) {
    supervisor_.Wake(WakeReason::kPush);
  } else if (roster_.has_idle_hands()) {
    supervisor_.Wake(WakeReason::kRescale);
  }
}

void ElasticListener::OnWake(WakeReason reason) {
  if (reason == WakeReason::kAnnounce) return handover_.AnnounceDue();
  if (roster_.dismissed()) return;
  if (roster_.active() == 0) {
    WakeIdle(reason);
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
  if (depth.ready > 0 || !depth.known) {
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
    const absl::Status status = threads_.Start([this, first = next_first_partition_.fetch_add(1)] {
      meter_.TaskBegan();
      DequeueTask(environment_, first & std::numeric_limits<int>::max()).Run();
      meter_.TaskEnded();
    });
    if (status.ok()) continue;
    for (int missing = started; missing < entered; ++missing) roster_.Leave();
    return on_error_(status);
  }
}

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

// Stops the sources of new work first: nothing new arrives while the current messages are finished.
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
  // Outside the lock: ending the subscription waits for a running OnTrigger.
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
  // Every task on the roster also gets its thread, so wait for the roster before joining the
  // threads.
  roster_.AwaitNone(absl::InfiniteDuration());
  threads_.Join();
}

}  // namespace muster::listener
