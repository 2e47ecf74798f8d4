// SPDX-License-Identifier: Apache-2.0

// OrderedListener: the partitions and the thread that reads them.
#include "muster/listener/ordered_listener.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status.h"
#include "muster/queue/limits.h"

namespace muster::listener {
namespace {

// Between two looks at how much waits, for those who ask for the load.
constexpr absl::Duration kGaugeInterval = absl::Seconds(5);
// The most leases: what the partitions hold, and what is collected of an earlier owner.
constexpr int kMaxLeases = kMaxUnsettledMessages;

}  // namespace

absl::StatusOr<std::unique_ptr<OrderedListener>> OrderedListener::Create(
    ListenerOptions options, KeyOf key_of, SubscriberFactory subscribers, queue::QueueStore* store,
    bus::TriggerBus* bus, base::Clock* clock) {
  MUSTER_RETURN_IF_ERROR(ValidateListenerOptions(options, store->traits()));
  if (!subscribers) return absl::InvalidArgumentError("a listener needs a subscriber factory");
  return std::unique_ptr<OrderedListener>(new OrderedListener(
      std::move(options), std::move(key_of), std::move(subscribers), store, bus, clock));
}

OrderedListener::OrderedListener(ListenerOptions options, KeyOf key_of,
                                 SubscriberFactory subscribers, queue::QueueStore* store,
                                 bus::TriggerBus* bus, base::Clock* clock)
    : options_(std::move(options)),
      key_of_(std::move(key_of)),
      store_(store),
      bus_(bus),
      clock_(clock),
      on_error_(LogListenerError),
      meter_(clock),
      away_(clock),
      dequeue_batch_size_(options_.dequeue_batch_size),
      retry_(base::RetryOptions(), clock),
      sizer_(options_.claim_horizon),
      leases_(clock, kMaxLeases, &counters_),
      triggers_(bus, options_.instance, &counters_),
      gauge_(options_.partitions, store, &leases_, &counters_, on_error_),
      max_workers_(options_.max_dequeue_tasks),
      idle_{options_.minimum_idle_interval, options_.safety_check_interval},
      uniform_(base::SeededUniform(base::RandomSeed())),
      partitions_(options_.partitions.size()),
      environment_(MakeEnvironment(std::move(subscribers))),
      settler_(
          {.partitions = options_.partitions,
           .output_queue = options_.output_queue,
           .pack_outputs = options_.pack_outputs,
           .holder = options_.instance,
           .linger = options_.settle_linger,
           .on_delayed = [](absl::Duration) {},
           .on_left_to_others = [](const queue::QueueId&, const std::string&, absl::Duration) {},
           .on_settled = [](const Lease&, bool) {},
           .on_error = on_error_},
          store, &leases_, &triggers_, &counters_, clock),
      renewer_({.partitions = options_.partitions, .on_error = on_error_}, store, &leases_,
               &counters_, clock) {
  for (size_t i = 0; i < options_.partitions.size(); ++i) {
    place_of_[options_.partitions[i]] = static_cast<int>(i);
  }
}

OrderedListener::~OrderedListener() { Stop(absl::InfiniteDuration()).IgnoreError(); }

TaskEnvironment OrderedListener::MakeEnvironment(SubscriberFactory subscribers) {
  return {.options = &options_,
          .rules = RulesOf(options_),
          .store = store_,
          .clock = clock_,
          .retry = &retry_,
          .leases = &leases_,
          .settler = &settler_,
          .sizer = &sizer_,
          .counters = &counters_,
          .meter = &meter_,
          .away = &away_,
          .stopping = stopping_.get_token(),
          .on_error = on_error_,
          .subscribers = std::move(subscribers),
          .keep = [this](std::vector<Settler::Item>* items) { KeepRetries(items); },
          .dequeue_batch_size = &dequeue_batch_size_};
}

absl::Status OrderedListener::Start() {
  base::MutexLock lock(&mu_);
  if (started_ || stopped_reading_) {
    return absl::FailedPreconditionError("the listener was started or stopped before");
  }
  if (bus_ != nullptr) {
    MUSTER_ASSIGN_OR_RETURN(
        subscription_,
        bus_->Subscribe([this](const bus::InterRoleCommunicationEvent& e) { OnTrigger(e); }));
  }
  started_ = true;
  reader_ = std::thread([this] { Read(); });
  return absl::OkStatus();
}

void OrderedListener::OnTrigger(const bus::InterRoleCommunicationEvent& event) {
  const auto* work = std::get_if<bus::CloudQueueWorkDetectedTriggerEvent>(&event.payload);
  if (work == nullptr) return;
  const auto place = place_of_.find(queue::QueueId{work->storage_account, work->queue_name});
  if (place == place_of_.end()) return;
  counters_.Add(&ListenerCounters::triggers_heard);
  base::MutexLock lock(&mu_);
  Partition& partition = partitions_[static_cast<size_t>(place->second)];
  partition.look_at = clock_->Monotonic();
  partition.empty_looks = 0;
  ++partition.triggers;
  partition.holds.reread = true;
  read_.NotifyAll();
}

void OrderedListener::Own(int place) {
  base::MutexLock lock(&mu_);
  Partition& partition = partitions_.at(static_cast<size_t>(place));
  ++partition.term;
  partition.reading = Reading::kReclaim;
  partition.look_at = clock_->Monotonic();
  partition.empty_looks = 0;
  read_.NotifyAll();
}

void OrderedListener::Drain(int place, std::function<void()> drained) {
  {
    base::MutexLock lock(&mu_);
    Partition& partition = partitions_.at(static_cast<size_t>(place));
    partition.reading = Reading::kDraining;
    DiscardWaitingLocked(place);
    partition.drained = std::move(drained);
  }
  NoteEnd(place);
}

void OrderedListener::Disown(int place) {
  std::vector<LeasePtr> lost;
  {
    base::MutexLock lock(&mu_);
    Partition& partition = partitions_.at(static_cast<size_t>(place));
    ++partition.term;
    partition.reading = Reading::kAway;
    partition.drained = nullptr;
    DiscardWaitingLocked(place);
    dispatcher_.Forget(place);
    for (const auto& [lease, running] : running_) {
      if (running.partition == place) lost.push_back(running.lease);
    }
  }
  for (const LeasePtr& lease : lost) leases_.Lost(*lease);
}

// Their leases end with the next Reclaim, or by themselves.
void OrderedListener::DiscardWaitingLocked(int place) {
  Partition& partition = partitions_[static_cast<size_t>(place)];
  std::vector<HeldMessage> waiting = dispatcher_.TakeWaiting(place);
  Discard(waiting);
  Discard(partition.collected);
  partition.collected.clear();
}

void OrderedListener::Discard(const std::vector<HeldMessage>& messages) {
  for (const HeldMessage& message : messages) {
    if (leases_.StartSettling(*message.lease)) leases_.Remove(*message.lease);
  }
}

void OrderedListener::RestartLocked(int place) {
  Partition& partition = partitions_[static_cast<size_t>(place)];
  if (partition.reading != Reading::kInOrder && partition.reading != Reading::kCollect) return;
  partition.reading = Reading::kReclaim;
  partition.look_at = clock_->Monotonic() + idle_.minimum;
  DiscardWaitingLocked(place);
  read_.NotifyAll();
}

void OrderedListener::NoteEnd(int place) {
  std::function<void()> drained;
  {
    base::MutexLock lock(&mu_);
    Partition& partition = partitions_[static_cast<size_t>(place)];
    if (dispatcher_.running(place) > 0) return;
    drained = std::exchange(partition.drained, nullptr);
    read_.NotifyAll();
  }
  if (drained) drained();
}

void OrderedListener::Read() {
  while (const std::optional<int> place = AwaitPartition()) {
    bool measures = false;
    {
      base::MutexLock lock(&mu_);
      const absl::Duration now = clock_->Monotonic();
      measures = now >= gauge_at_;
      if (measures) gauge_at_ = now + kGaugeInterval;
    }
    if (measures) gauge_.Look();
    Look(*place);
  }
}

std::optional<int> OrderedListener::AwaitPartition() {
  base::MutexLock lock(&mu_);
  const int count = static_cast<int>(partitions_.size());
  while (!stopped_reading_) {
    const absl::Duration now = clock_->Monotonic();
    absl::Duration next = absl::InfiniteDuration();
    for (int looked = 0; looked < count && !paused_; ++looked) {
      const int place = (next_partition_ + looked) % count;
      if (!MayLookLocked(place)) continue;
      const absl::Duration at = partitions_[static_cast<size_t>(place)].look_at;
      if (at <= now) {
        next_partition_ = (place + 1) % count;
        return place;
      }
      next = std::min(next, at);
    }
    clock_->WaitUntil(&read_, &mu_, next);
  }
  return std::nullopt;
}

bool OrderedListener::MayLookLocked(int place) const {
  switch (partitions_[static_cast<size_t>(place)].reading) {
    case Reading::kAway:
    case Reading::kDraining:
      return false;
    case Reading::kReclaim:
      // Also of an earlier term: a handler may still be at work.
      return dispatcher_.running(place) == 0 && partitions_[static_cast<size_t>(place)].busy == 0 &&
             partitions_[static_cast<size_t>(place)].giving_back == 0;
    case Reading::kCollect:
      return true;
    case Reading::kInOrder:
      break;
  }
  if (partitions_[static_cast<size_t>(place)].holds.any_passed) return true;
  return dispatcher_.held(place) < kMaxHeldMessages &&
         dispatcher_.held_bytes(place) < kMaxHeldBytes;
}

void OrderedListener::Look(int place) {
  bool reclaims = false, rereads = false, any_passed = false;
  int64_t term = 0;
  {
    base::MutexLock lock(&mu_);
    const Partition& partition = partitions_[static_cast<size_t>(place)];
    reclaims = partition.reading == Reading::kReclaim;
    const bool in_order = partition.reading == Reading::kInOrder;
    rereads = in_order && partition.holds.reread && !partition.holds.keys.empty();
    any_passed = in_order && partition.holds.any_passed;
    term = partition.term;
  }
  if (reclaims) {
    if (ReadHolds(place, term)) Reclaim(place, term);
  } else if (any_passed) {
    ReleasePassed(place, term);
  } else {
    if (rereads) RereadHolds(place, term);
    Receive(place, term);
  }
}

void OrderedListener::Reclaim(int place, int64_t term) {
  const queue::QueueId& queue = options_.partitions[static_cast<size_t>(place)];
  const absl::StatusOr<uint64_t> below = store_->Reclaim(queue);
  if (!below.ok()) on_error_(base::Annotate(below.status(), "reclaiming " + queue.ToString()));
  base::MutexLock lock(&mu_);
  Partition& partition = partitions_[static_cast<size_t>(place)];
  if (partition.term != term || partition.reading != Reading::kReclaim) return;
  if (!below.ok()) return RestLocked(&partition);
  dispatcher_.Forget(place);
  partition.below = *below;
  partition.next = 0;
  partition.empty_looks = 0;
  partition.look_at = clock_->Monotonic();
  partition.reading = *below == 0 ? Reading::kInOrder : Reading::kCollect;
}

void OrderedListener::RestLocked(Partition* partition) {
  base::IdleBackoff backoff(idle_, [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return uniform_(); });
  partition->look_at = clock_->Monotonic() + backoff.Interval(++partition->empty_looks);
}

void OrderedListener::Receive(int place, int64_t term) {
  uint64_t triggers = 0;
  {
    base::MutexLock lock(&mu_);
    triggers = partitions_[static_cast<size_t>(place)].triggers;
  }
  const int places = leases_.Reserve(store_->traits().max_receive);
  if (places == 0) return;
  const queue::QueueId& queue = options_.partitions[static_cast<size_t>(place)];
  const absl::Duration asked_at = clock_->Monotonic();
  auto messages = retry_.Run(stopping_.get_token(), [&](const base::RetryAttempt&) {
    auto received = store_->Receive(queue, {places, options_.visibility});
    counters_.Add(!received.ok()      ? &ListenerCounters::receives_failed
                  : received->empty() ? &ListenerCounters::receives_empty
                                      : &ListenerCounters::receives_useful);
    return received;
  });
  if (!messages.ok() && !stopping_.stop_requested()) {
    on_error_(base::Annotate(messages.status(), "receiving from " + queue.ToString()));
  }
  const bool failed = !messages.ok();
  std::vector<HeldMessage> held;
  if (!failed) held = Hold(place, *std::move(messages), asked_at, places);
  if (failed) leases_.Unreserve(places);
  base::MutexLock lock(&mu_);
  Partition& partition = partitions_[static_cast<size_t>(place)];
  if (partition.term != term ||
      (partition.reading != Reading::kCollect && partition.reading != Reading::kInOrder)) {
    return Discard(held);
  }
  // A trigger that came meanwhile is of a put that this look may have missed.
  const bool is_empty = held.empty();
  if (!failed) TakeInLocked(place, std::move(held));
  if (is_empty && partition.triggers == triggers) {
    RestLocked(&partition);
    if (!failed && partition.reading == Reading::kInOrder) {
      NoteEmptyLocked(place);
      if (partition.holds.any_passed) partition.look_at = clock_->Monotonic();
    }
  }
  if (!is_empty) partition.empty_looks = 0;
}

std::vector<HeldMessage> OrderedListener::Hold(int place, std::vector<queue::Message> messages,
                                               absl::Duration asked_at, int places) {
  leases_.Unreserve(places - static_cast<int>(messages.size()));
  if (messages.empty()) return {};
  absl::Duration lasts = options_.visibility;
  if (!store_->traits().per_receive_visibility) {
    lasts =
        std::max(messages.front().next_visible_time - clock_->Now(), queue::kMinReceiveVisibility);
  }
  counters_.Add(&ListenerCounters::messages_received, static_cast<int64_t>(messages.size()));
  std::vector<HeldMessage> held;
  for (LeasePtr& lease : leases_.Add(place, std::move(messages), asked_at, lasts)) {
    const queue::Message& message = lease->message;
    if (message.dequeue_count > 1) counters_.Add(&ListenerCounters::redeliveries);
    if (message.interrupted) counters_.Add(&ListenerCounters::interrupted);
    const std::optional<std::string> key = key_of_(message);
    // One without a key is alone with a name that no key has.
    std::string name = key.has_value() ? "k" + *key : absl::StrCat("p", message.position);
    const uint64_t position = message.position;
    held.push_back({std::move(lease), std::move(name), position});
  }
  return held;
}

void OrderedListener::TakeInLocked(int place, std::vector<HeldMessage> held) {
  Partition& partition = partitions_[static_cast<size_t>(place)];
  if (partition.reading == Reading::kCollect) {
    const bool is_all = held.empty() || std::any_of(held.begin(), held.end(), [&](const auto& one) {
                          return one.position >= partition.below;
                        });
    WithholdLocked(place, &held);
    std::move(held.begin(), held.end(), std::back_inserter(partition.collected));
    if (!is_all) return;
    held = std::exchange(partition.collected, {});
    std::sort(held.begin(), held.end(),
              [](const HeldMessage& a, const HeldMessage& b) { return a.position < b.position; });
    partition.reading = Reading::kInOrder;
  }
  std::vector<HeldMessage> withheld;
  for (size_t i = 0; i < held.size(); ++i) {
    if (Withholds(held[i])) {
      partition.next = std::max(partition.next, held[i].position + 1);
      withheld.push_back(std::move(held[i]));
      continue;
    }
    if (held[i].position >= partition.next) {
      partition.next = held[i].position + 1;
      dispatcher_.Add(std::move(held[i]));
      continue;
    }
    // The item of a held key is alone: a redrive may bring it back with its old position.
    if (IsHeldLocked(place, held[i].key) && dispatcher_.Add(held[i])) continue;
    // One that was put earlier, or is here already: redriven, given back by others, or redriven so
    // soon that its end as a dead letter was not noted yet.
    Discard({held.begin() + static_cast<std::ptrdiff_t>(i), held.end()});
    RestartLocked(place);
    break;
  }
  GiveBackLocked(place, std::move(withheld));
  StartWorkersLocked();
}

}  // namespace muster::listener
