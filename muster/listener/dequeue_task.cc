// SPDX-License-Identifier: Apache-2.0
#include "muster/listener/dequeue_task.h"

#include <algorithm>
#include <exception>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/status.h"
#include "muster/listener/delivery_batch.h"

namespace muster::listener {
namespace {

// How often a busy task asks for a check of the number of tasks.
constexpr absl::Duration kRescaleInterval = absl::Seconds(1);
// A task that leaves asks for the next look after this time, if the store cannot tell whether the
// holders of other messages still live. A dead process releases nothing: the safety check alone
// would find its messages one lease later.
constexpr absl::Duration kNeighbourCheck = absl::Seconds(10);
// When the subscriber could not be made, a task is started again after this long.
constexpr absl::Duration kSubscriberRetry = absl::Seconds(1);

}  // namespace

void LogListenerError(const absl::Status& status) {
  base::Log(base::kWarning, "listener error", {{"status", status.ToString()}});
}

DequeueTask::DequeueTask(const TaskEnvironment& environment, int first_partition)
    : environment_(environment),
      partitions_(static_cast<int>(environment.options->partitions.size())),
      next_partition_(first_partition % partitions_),
      helped_at_(environment.clock->Monotonic()),
      uniform_(base::SeededUniform(base::RandomSeed())) {}

void DequeueTask::Run(std::optional<ArrivedMessage> first) {
  if (!MakeSubscriber()) {
    if (first.has_value()) GiveBack(*first);
    environment_.roster->Leave();
    environment_.supervisor->WakeIn(kSubscriberRetry);
    return;
  }
  if (first.has_value()) WorkOn(*std::move(first));
  while (!environment_.roster->LeaveIfDismissed()) {
    looked_at_ = environment_.clock->Monotonic();
    const uint64_t seen_wakes = environment_.roster->wakes();
    if (!FollowUp(LookForWork(), seen_wakes)) return;
  }
}

bool DequeueTask::MakeSubscriber() {
  absl::StatusOr<std::unique_ptr<Subscriber>> made = AskFactory();
  if (made.ok() && *made == nullptr) made = absl::InternalError("the factory made none");
  if (!made.ok()) {
    environment_.on_error(base::Annotate(made.status(), "making a subscriber"));
    return false;
  }
  subscriber_ = *std::move(made);
  return true;
}

// Catches exceptions: no caller on this thread does, so one would end the process.
absl::StatusOr<std::unique_ptr<Subscriber>> DequeueTask::AskFactory() const {
  try {
    return environment_.subscribers();
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("the factory threw: ", error.what()));
  } catch (...) {
    return absl::InternalError("the factory threw something that is no std::exception");
  }
}

bool DequeueTask::FollowUp(Look look, uint64_t seen_wakes) {
  switch (look) {
    case Look::kWorked:
      idle_count_ = 0;
      failures_ = 0;
      return true;
    case Look::kEmpty:
      failures_ = 0;
      return RestAfterEmpty(seen_wakes);
    case Look::kFailed:
      // Not idle: it is unknown whether there is work, so the task stays and tries more slowly.
      ++failures_;
      environment_.roster->Sleep(Backoff().Interval(failures_), seen_wakes);
      return true;
    case Look::kStopping:
      return true;
  }
  return true;
}

DequeueTask::Look DequeueTask::LookForWork() {
  LeaseTable& leases = *environment_.leases;
  const int claim = environment_.sizer->Claim(environment_.dequeue_batch_size->load());
  const int places = leases.Reserve(claim);
  if (places == 0) return Look::kStopping;
  bool failed = false;
  for (int looked = 0; looked < partitions_; ++looked) {
    const int partition = next_partition_;
    next_partition_ = (next_partition_ + 1) % partitions_;
    const absl::Duration asked_at = environment_.clock->Monotonic();
    const absl::Duration visibility = environment_.visibility->Visibility();
    auto messages = Receive(partition, {places, visibility});
    if (!messages.ok()) {
      failed = true;
    } else if (!messages->empty()) {
      leases.Unreserve(places - static_cast<int>(messages->size()));
      const absl::Duration lasts = SpanOf(*messages, visibility);
      Work(environment_.leases->Add(partition, *std::move(messages), asked_at, lasts), asked_at);
      return Look::kWorked;
    }
  }
  leases.Unreserve(places);
  return failed ? Look::kFailed : Look::kEmpty;
}

absl::Duration DequeueTask::SpanOf(const std::vector<queue::Message>& messages,
                                   absl::Duration asked) const {
  if (environment_.store->traits().per_receive_visibility) return asked;
  return std::max(messages.front().next_visible_time - environment_.clock->Now(),
                  queue::kMinReceiveVisibility);
}

absl::StatusOr<std::vector<queue::Message>> DequeueTask::Receive(
    int partition, const queue::ReceiveOptions& wanted) {
  const queue::QueueId& queue = environment_.options->partitions[partition];
  CounterSet& counters = *environment_.counters;
  auto messages = environment_.retry->Run(environment_.stopping, [&](const base::RetryAttempt&) {
    auto received = environment_.store->Receive(queue, wanted);
    counters.Add(!received.ok()      ? &ListenerCounters::receives_failed
                 : received->empty() ? &ListenerCounters::receives_empty
                                     : &ListenerCounters::receives_useful);
    return received;
  });
  if (!messages.ok() && !environment_.stopping.stop_requested()) {
    environment_.on_error(
        base::Annotate(messages.status(), absl::StrCat("receiving from ", queue.ToString())));
  }
  return messages;
}

void DequeueTask::Work(std::vector<LeasePtr> leases, absl::Duration asked_at) {
  const int count = static_cast<int>(leases.size());
  CounterSet& counters = *environment_.counters;
  counters.Add(&ListenerCounters::messages_received, count);
  for (const LeasePtr& lease : leases) {
    if (lease->message.dequeue_count > 1) counters.Add(&ListenerCounters::redeliveries);
    if (lease->message.interrupted) counters.Add(&ListenerCounters::interrupted);
  }
  AskForHelp(environment_.roster->BeginWork());
  const absl::Duration started_at = environment_.clock->Monotonic();
  const auto uniform = [this] { return uniform_(); };
  DeliveryBatch batch(environment_, std::move(leases), uniform, asked_at, started_at);
  environment_.meter->WorkBegan();
  batch.Run(*subscriber_);
  if (batch.left_to_others() == count) {
    environment_.away->Observe(count, environment_.clock->Monotonic() - asked_at);
  }
  environment_.meter->WorkEnded();
  environment_.roster->EndWork();
  environment_.sizer->Observe(count, environment_.clock->Monotonic() - started_at);
}

void DequeueTask::WorkOn(ArrivedMessage arrived) {
  if (environment_.leases->Reserve(1) == 0) return GiveBack(arrived);
  std::vector<queue::Message> messages;
  messages.push_back(std::move(arrived.message));
  const absl::Duration lasts = SpanOf(messages, environment_.visibility->Visibility());
  Work(environment_.leases->Add(arrived.partition, std::move(messages), arrived.at, lasts),
       arrived.at);
}

// Its lease runs out in the end if this fails.
void DequeueTask::GiveBack(const ArrivedMessage& arrived) {
  const queue::QueueId& queue = environment_.options->partitions[arrived.partition];
  queue::UpdateRequest request;
  request.receipt = arrived.message.receipt;
  request.attempt_ended = true;
  environment_.counters->Add(&ListenerCounters::give_backs);
  const absl::Status given = environment_.store->Update(queue, {request}).status();
  if (!given.ok()) {
    environment_.on_error(base::Annotate(given, absl::StrCat("giving back to ", queue.ToString())));
  }
}

// QueueWorkDetected is raised for work after idleness; a task that stays busy raises it
// now and then, as long as there is room for more tasks. So does a task that was counted on for
// other messages although it already held one.
void DequeueTask::AskForHelp(bool counted_on) {
  const absl::Duration now = environment_.clock->Monotonic();
  if (idle_count_ == 0 && !counted_on) {
    if (now - helped_at_ < kRescaleInterval || !environment_.roster->has_idle_hands()) return;
  }
  helped_at_ = now;
  environment_.supervisor->Wake(WakeReason::kRescale);
}

bool DequeueTask::RestAfterEmpty(uint64_t seen_wakes) {
  if (idle_count_ < std::numeric_limits<int>::max()) ++idle_count_;
  IdleDecision decision;
  bool last_stays = false;
  if (environment_.queue_empty) {
    decision = environment_.queue_empty(idle_count_);
  } else {
    decision.delay = Backoff().Interval(idle_count_);
    decision.stop = decision.delay >= environment_.idle_intervals().maximum ||
                    environment_.waits_without_task();
    last_stays = environment_.options->mode == DispatchMode::kPull;
  }
  if (decision.stop) {
    switch (environment_.roster->TryLeave(seen_wakes, last_stays)) {
      case TaskRoster::Departure::kLeft:
        environment_.on_empty_leave(looked_at_);
        // What a dead process held comes to an open receive.
        if (!environment_.store->traits().exact_stats && !environment_.waits_without_task()) {
          environment_.supervisor->WakeIn(kNeighbourCheck, WakeReason::kSafety);
        }
        return false;
      case TaskRoster::Departure::kPollAgain:
        return true;
      case TaskRoster::Departure::kStay:
        break;
    }
  }
  environment_.roster->Sleep(decision.delay, seen_wakes);
  return true;
}

base::IdleBackoff DequeueTask::Backoff() const {
  return base::IdleBackoff(environment_.idle_intervals(), [this] { return uniform_(); });
}

}  // namespace muster::listener
