#include "muster/listener/trigger_sender.h"

#include <utility>

namespace muster::listener {
namespace {

// Within a burst: often enough that no reader's first idle sleep (about 100 ms) is spent in vain,
// seldom enough that triggers cost nothing beside the puts, which are fsynced.
constexpr absl::Duration kAnnounceInterval = absl::Milliseconds(5);

}  // namespace

TriggerSender::TriggerSender(bus::TriggerBus* bus, std::string instance, CounterSet* counters)
    : bus_(bus), instance_(std::move(instance)), counters_(counters) {}

void TriggerSender::Send(const queue::QueueId& queue, int64_t messages, const std::string& wanted) {
  if (bus_ == nullptr) return;
  const bus::CloudQueueWorkDetectedTriggerEvent work{.storage_account = queue.account,
                                                     .queue_name = queue.name,
                                                     .payload_size = messages,
                                                     .wanted = wanted};
  if (bus_->Publish({instance_, work}).ok()) counters_->Add(&ListenerCounters::triggers_sent);
}

BurstAnnouncer::BurstAnnouncer(queue::QueueId queue, TriggerSender* sender, base::Clock* clock)
    : queue_(std::move(queue)), sender_(sender), clock_(clock) {}

void BurstAnnouncer::OnPut(int64_t messages) {
  unannounced_ += messages;
  if (!in_burst_ || clock_->Monotonic() - announced_at_ >= kAnnounceInterval) Announce();
  in_burst_ = true;
}

void BurstAnnouncer::OnIdle() {
  if (unannounced_ > 0) Announce();
  in_burst_ = false;
}

void BurstAnnouncer::Announce() {
  sender_->Send(queue_, unannounced_);
  unannounced_ = 0;
  announced_at_ = clock_->Monotonic();
}

}  // namespace muster::listener
