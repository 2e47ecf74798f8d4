// SPDX-License-Identifier: Apache-2.0

// ElasticListener: starting, handing over, changing and stopping.

#include "muster/listener/elastic_listener.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/random.h"
#include "muster/base/status.h"
#include "muster/listener/verdict.h"

namespace muster::listener {

ElasticListener::ElasticListener(ListenerOptions options, ListenerEvents events,
                                 SubscriberFactory subscribers, queue::QueueStore* store,
                                 bus::TriggerBus* bus, base::Clock* clock)
    : options_(std::move(options)),
      events_(std::move(events)),
      store_(store),
      bus_(bus),
      clock_(clock),
      on_error_(events_.on_error ? events_.on_error : LogListenerError),
      partitions_(options_.partitions.begin(), options_.partitions.end()),
      meter_(clock),
      away_(clock),
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
               &counters_, clock),
      // Two checks long, so that waiting costs no more requests than checking.
      open_receives_(options_.partitions,
                     static_cast<int>(base::RandomSeed() % options_.partitions.size()),
                     std::min(2 * options_.safety_check_interval, queue::kMaxWait), store, clock,
                     {.on_message =
                          [this](int partition, queue::Message message) {
                            return OnMessage(partition, std::move(message));
                          },
                      .on_end = [this](const absl::Status& why) { OnReceiveEnd(why); }}) {}

ElasticListener::~ElasticListener() { Stop(absl::InfiniteDuration()).IgnoreError(); }

void ElasticListener::OnSettled(const Lease& lease, bool in_time) {
  if (in_time) {
    visibility_.Observe(clock_->Monotonic() - lease.received_at);
  } else {
    visibility_.ObserveLost();
  }
}

TaskEnvironment ElasticListener::MakeEnvironment(SubscriberFactory subscribers) {
  TaskEnvironment environment{
      .options = &options_,
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
      .away = &away_,
      .supervisor = &supervisor_,
      .stopping = stopping_.get_token(),
      .on_error = on_error_,
      .subscribers = std::move(subscribers),
      .waits_without_task =
          [this] {
            return options_.mode == DispatchMode::kPush && open_receives_.will_cover_all() &&
                   !handover_.StaysAway();
          },
      .on_empty_leave =
          [this](absl::Duration looked_at) { looked_at_ = absl::ToInt64Nanoseconds(looked_at); },
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
  load.partitions = gauge_.partitions_seen();
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
  open_receives_.Close();  // the message would come back here as soon as to one that it fits
  supervisor_.WakeIn(delay, WakeReason::kAnnounce);
}

void ElasticListener::Pause() {
  {
    base::MutexLock lock(&phase_mu_);
    if (phase_ == Phase::kStopping || phase_ == Phase::kStopped) return;
    paused_ = true;
    roster_.Dismiss();
  }
  open_receives_.Close();
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
  const absl::Duration deadline = clock_->Monotonic() + grace;
  StopSenders();
  ReleaseUnbegun();
  if (!options_.stops_patiently) leases_.StopAll();
  const absl::Status status = settler_.Finish(
      [this](absl::Duration until) { return roster_.AwaitNone(until); }, deadline, grace);
  if (absl::IsDeadlineExceeded(status)) {
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
  open_receives_.Close();  // the supervisor opens no more
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
