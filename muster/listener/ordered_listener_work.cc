// SPDX-License-Identifier: Apache-2.0

// OrderedListener: the workers, what becomes of a message, changes and the stop.
#include <algorithm>
#include <exception>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/status.h"
#include "muster/listener/delivery_batch.h"
#include "muster/listener/ordered_listener.h"

namespace muster::listener {
namespace {

// A worker without work leaves after this; its handler goes back to its pool.
constexpr absl::Duration kIdleWorker = absl::Seconds(1);
// When a subscriber could not be made, a worker tries again after this long.
constexpr absl::Duration kSubscriberRetry = absl::Seconds(1);

}  // namespace

void OrderedListener::StartWorkersLocked() {
  if (!started_ || paused_ || stopped_reading_) return;
  const size_t ready = dispatcher_.CountReady(clock_->Monotonic());
  if (ready == 0) return;
  if (idle_workers_ > 0) ready_.NotifyAll();
  while (static_cast<size_t>(idle_workers_) < ready && workers_ < max_workers_) {
    ++workers_;
    ++idle_workers_;
    most_workers_ = std::max(most_workers_, workers_);
    const absl::Status started = threads_.Start([this] { Work(); });
    if (started.ok()) continue;
    --workers_;
    --idle_workers_;
    const bool is_workless = workers_ == 0;
    (is_workless && on_no_task_ ? on_no_task_
                                : on_error_)(base::Annotate(started, "starting a worker"));
    return;
  }
}

void OrderedListener::Work() {
  meter_.TaskBegan();
  const std::unique_ptr<Subscriber> subscriber = MakeSubscriber();
  for (;;) {
    const std::vector<HeldMessage> messages = AwaitMessages();
    if (messages.empty()) break;
    const absl::Duration began = clock_->Monotonic();
    std::vector<LeasePtr> leases;
    for (const HeldMessage& message : messages) leases.push_back(message.lease);
    const auto received_at = leases.front()->received_at;
    DeliveryBatch batch(environment_, std::move(leases), base::SeededUniform(base::RandomSeed()),
                        received_at, received_at);
    meter_.WorkBegan();
    batch.Run(*subscriber);
    meter_.WorkEnded();
    sizer_.Observe(static_cast<int>(messages.size()), clock_->Monotonic() - began);
    base::MutexLock lock(&mu_);
    ++idle_workers_;
  }
  meter_.TaskEnded();
  base::MutexLock lock(&mu_);
  --workers_;
  left_.NotifyAll();
}

// Tries until it is made: the messages wait here, and no other may take them.
std::unique_ptr<Subscriber> OrderedListener::MakeSubscriber() {
  for (;;) {
    absl::StatusOr<std::unique_ptr<Subscriber>> made = absl::InternalError("the factory made none");
    try {
      made = environment_.subscribers();
    } catch (const std::exception& error) {
      made = absl::InternalError(absl::StrCat("the factory threw: ", error.what()));
    }
    if (made.ok() && *made != nullptr) return *std::move(made);
    on_error_(base::Annotate(made.status(), "making a subscriber"));
    base::MutexLock lock(&mu_);
    const absl::Duration until = clock_->Monotonic() + kSubscriberRetry;
    while (!stopping_.stop_requested() && clock_->Monotonic() < until) {
      clock_->WaitUntil(&ready_, &mu_, until);
    }
    if (stopping_.stop_requested()) return nullptr;
  }
}

std::vector<HeldMessage> OrderedListener::AwaitMessages() {
  base::MutexLock lock(&mu_);
  const absl::Duration leave_at = clock_->Monotonic() + kIdleWorker;
  while (!stopping_.stop_requested() && workers_ <= max_workers_) {
    const absl::Duration now = clock_->Monotonic();
    const size_t ready = paused_ ? 0 : dispatcher_.CountReady(now);
    if (ready > 0) {
      std::vector<HeldMessage> messages = dispatcher_.Take(now, ShareLocked(ready));
      if (!messages.empty()) {
        --idle_workers_;
        NoteRunningLocked(messages);
        return messages;
      }
    }
    // The last idle worker waits for the retries.
    const absl::Duration next = paused_ ? absl::InfiniteDuration() : dispatcher_.NextAt();
    const bool may_leave = idle_workers_ > 1 || next == absl::InfiniteDuration();
    if (may_leave && now >= leave_at) break;
    clock_->WaitUntil(&ready_, &mu_, may_leave ? std::min(next, leave_at) : next);
  }
  --idle_workers_;  // now, so that not all idle ones leave at a time
  return {};
}

// As many as a worker starts soon, and no more than its share.
size_t OrderedListener::ShareLocked(size_t ready) const {
  const auto claim = static_cast<size_t>(sizer_.Claim(dequeue_batch_size_));
  const auto workers = static_cast<size_t>(std::max(1, max_workers_));
  return std::clamp<size_t>((ready + workers - 1) / workers, 1, claim);
}

void OrderedListener::NoteRunningLocked(const std::vector<HeldMessage>& messages) {
  for (const HeldMessage& message : messages) {
    Partition& partition = partitions_[static_cast<size_t>(message.lease->partition)];
    ++partition.busy;
    running_[message.lease.get()] = {message.lease->partition, partition.term, message.lease,
                                     message.key, message.position};
  }
}

void OrderedListener::KeepRetries(std::vector<Settler::Item>* items) {
  std::vector<Settler::Item> settled;
  for (Settler::Item& item : *items) {
    Running running;
    {
      base::MutexLock lock(&mu_);
      const auto found = running_.find(item.lease.get());
      MUSTER_CHECK(found != running_.end(), "message ", item.lease->message.message_id,
                   " is settled and does not run");
      running = std::move(found->second);
      running_.erase(found);
      --partitions_[static_cast<size_t>(running.partition)].busy;
    }
    HoldIfDead(&item, running);
    if (Keeps(item, running)) continue;
    const bool is_deleted = item.verdict.action == Verdict::Action::kDelete;
    item.verdict.on_settled = [this, running, is_deleted,
                               then =
                                   std::move(item.verdict.on_settled)](const absl::Status& status) {
      if (then) then(status);
      OnSettled(running, is_deleted, status);
    };
    settled.push_back(std::move(item));
  }
  items->swap(settled);
}

bool OrderedListener::Keeps(const Settler::Item& item, const Running& running) {
  const Verdict& verdict = item.verdict;
  if (verdict.action != Verdict::Action::kGiveBack || stopping_.stop_requested()) return false;
  {
    base::MutexLock lock(&mu_);
    const Partition& partition = partitions_[static_cast<size_t>(running.partition)];
    if (partition.term != running.term || partition.reading != Reading::kInOrder) return false;
  }
  const bool unused = verdict.refund_attempt && leases_.charged(*item.lease);
  LeasePtr again = leases_.Keep(*item.lease, item.attempts, unused);
  if (again == nullptr) return false;
  counters_.Add(verdict.counter);
  if (verdict.on_settled) verdict.on_settled(absl::OkStatus());
  HeldMessage held{std::move(again), running.key, running.position};
  base::MutexLock lock(&mu_);
  const Partition& partition = partitions_[static_cast<size_t>(running.partition)];
  if (partition.term != running.term) {
    Discard({held});
    return true;
  }
  const bool goes_on = partition.reading == Reading::kInOrder && !stopping_.stop_requested();
  dispatcher_.Keep(std::move(held), clock_->Monotonic() + verdict.delay);
  if (!goes_on) DiscardWaitingLocked(running.partition);
  StartWorkersLocked();
  if (idle_workers_ > 0) ready_.NotifyAll();  // one waits until the retry
  read_.NotifyAll();
  return true;
}

void OrderedListener::OnSettled(const Running& running, bool is_deleted,
                                const absl::Status& status) {
  {
    base::MutexLock lock(&mu_);
    const Partition& partition = partitions_[static_cast<size_t>(running.partition)];
    if (partition.term != running.term) return;
    dispatcher_.Settled(running.partition, running.key);
    if (status.ok() && is_deleted) NoteDeletedLocked(running);
    // It may come again: what of its key comes next is not known.
    if (!status.ok()) RestartLocked(running.partition);
    StartWorkersLocked();
  }
  NoteEnd(running.partition);
}

absl::Status OrderedListener::StartListener(int thread_count) {
  if (thread_count <= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("StartListener(", thread_count, "): the number of tasks must be positive"));
  }
  base::MutexLock lock(&mu_);
  if (paused_ || stopped_reading_) {
    return absl::FailedPreconditionError("the listener is paused or stopped");
  }
  StartWorkersLocked();
  return absl::OkStatus();
}

ListenerInfo OrderedListener::QueryState() const {
  ListenerInfo info;
  info.current_queue_depth = gauge_.Look().ready;
  info.unsettled_messages = leases_.unsettled();
  base::MutexLock lock(&mu_);
  info.active_dequeue_tasks = workers_;
  info.total_dequeue_tasks = most_workers_;
  return info;
}

ListenerLoad OrderedListener::Load() const {
  ListenerLoad load;
  load.times = meter_.Read();
  load.partitions = gauge_.partitions_seen();
  base::MutexLock lock(&mu_);
  load.max_dequeue_tasks = max_workers_;
  return load;
}

void OrderedListener::Pause() {
  base::MutexLock lock(&mu_);
  paused_ = true;
}

void OrderedListener::Resume() {
  base::MutexLock lock(&mu_);
  paused_ = false;
  StartWorkersLocked();
  ready_.NotifyAll();
  read_.NotifyAll();
}

ListenerPhase OrderedListener::phase() const {
  base::MutexLock lock(&mu_);
  if (stopped_) return ListenerPhase::kStopped;
  if (stopped_reading_) return ListenerPhase::kDraining;
  return paused_ ? ListenerPhase::kPaused : ListenerPhase::kListening;
}

absl::Status OrderedListener::SetDequeueBatchSize(int messages) {
  MUSTER_RETURN_IF_ERROR(ValidateBatchSize(messages, store_->traits()));
  dequeue_batch_size_ = messages;
  return absl::OkStatus();
}

absl::Status OrderedListener::SetIdleIntervals(absl::Duration minimum, absl::Duration maximum) {
  MUSTER_RETURN_IF_ERROR(ValidateIdleIntervals(minimum, maximum));
  base::MutexLock lock(&mu_);
  idle_ = {minimum, maximum};
  return absl::OkStatus();
}

absl::Status OrderedListener::SetMaxDequeueTasks(int tasks) {
  MUSTER_RETURN_IF_ERROR(ValidateMaxDequeueTasks(tasks));
  base::MutexLock lock(&mu_);
  max_workers_ = tasks;
  StartWorkersLocked();
  ready_.NotifyAll();  // surplus workers leave
  return absl::OkStatus();
}

ListenerOptions OrderedListener::options() const {
  ListenerOptions options = options_;
  options.dequeue_batch_size = dequeue_batch_size_;
  base::MutexLock lock(&mu_);
  options.max_dequeue_tasks = max_workers_;
  options.minimum_idle_interval = idle_.minimum;
  options.maximum_idle_interval = idle_.maximum;
  return options;
}

absl::Status OrderedListener::Stop(absl::Duration grace) {
  absl::Status status;
  {
    base::MutexLock lock(&stop_mu_);
    if (std::exchange(stop_called_, true)) return stop_status_;
    status = stop_status_ = StopOnce(grace);
  }
  if (on_stopped_) on_stopped_();
  return status;
}

absl::Status OrderedListener::StopOnce(absl::Duration grace) {
  const absl::Duration deadline = clock_->Monotonic() + grace;
  StopReading();
  if (!options_.stops_patiently) leases_.StopAll();
  const absl::Status status = settler_.Finish(
      [this](absl::Duration until) { return AwaitWorkers(until); }, deadline, grace);
  if (absl::IsDeadlineExceeded(status)) {
    renewer_.Stop();
    leases_.StopAll();
  }
  AwaitWorkers(absl::InfiniteDuration());
  threads_.Join();
  settler_.Cancel();
  renewer_.Stop();
  base::MutexLock lock(&mu_);
  stopped_ = true;
  return status;
}

void OrderedListener::StopReading() {
  std::unique_ptr<bus::TriggerBus::Subscription> subscription;
  {
    base::MutexLock lock(&mu_);
    stopped_reading_ = true;
    subscription = std::move(subscription_);
    read_.NotifyAll();
  }
  // Outside the lock: ending the subscription waits for a running OnTrigger.
  subscription.reset();
  stopping_.request_stop();
  leases_.AbortWaits();
  if (reader_.joinable()) reader_.join();
  base::MutexLock lock(&mu_);
  for (size_t i = 0; i < partitions_.size(); ++i) DiscardWaitingLocked(static_cast<int>(i));
  ready_.NotifyAll();
}

bool OrderedListener::AwaitWorkers(absl::Duration deadline) {
  base::MutexLock lock(&mu_);
  while (workers_ > 0) {
    if (clock_->WaitUntil(&left_, &mu_, deadline)) return workers_ == 0;
  }
  return true;
}

}  // namespace muster::listener
