// SPDX-License-Identifier: Apache-2.0
#include "services/host/holder_watch.h"

#include <algorithm>
#include <utility>

#include "muster/base/log.h"
#include "muster/item/queue_names.h"
#include "muster/telemetry/catalogue.h"

namespace muster::host {

HolderWatch::HolderWatch(std::string self, bus::Roster* roster, queue::QueueStore* queues,
                         bus::TriggerBus* bus, base::Clock* clock, telemetry::Registry* metrics)
    : self_(std::move(self)),
      roster_(roster),
      queues_(queues),
      bus_(bus),
      clock_(clock),
      dead_holders_(telemetry::Counters<0>(metrics, telemetry::kDeadHolders).With({})),
      messages_(metrics, telemetry::kDeadHolderMessages) {}

void HolderWatch::Start() {
  thread_ = std::jthread([this](const std::stop_token& stop) {
    while (base::SleepUnlessStopped(clock_, Look(), stop)) {
    }
  });
}

absl::Duration HolderWatch::Look() {
  const bus::Silence silence = roster_->SilentFor(kSilentHolder);
  // An instance that joins meanwhile is silent no sooner than this.
  absl::Duration next = std::min(silence.next, kSilentHolder);
  std::map<std::string, absl::Duration> asks_at;
  for (const bus::Silence::Instance& silent : silence.instances) {
    if (silent.name == self_) continue;
    const auto asked = asks_at_.find(silent.name);
    absl::Duration at = asked == asks_at_.end() ? -absl::InfiniteDuration() : asked->second;
    if (clock_->Monotonic() >= at) {
      at = Release(silent) ? absl::InfiniteDuration() : clock_->Monotonic() + kAskAgain;
    }
    asks_at[silent.name] = at;
    next = std::min(next, at - clock_->Monotonic());
  }
  asks_at_ = std::move(asks_at);
  return std::max(next, absl::ZeroDuration());
}

bool HolderWatch::Release(const bus::Silence::Instance& silent) {
  const auto released = queues_->ReleaseHeldBy(silent.name, silent.lasts);
  if (!released.ok()) return false;  // it may live, or the store does not answer
  // Of several that ask at a time, one gets the messages.
  if (!released->empty()) dead_holders_.Add();
  for (const queue::Released& of : *released) {
    messages_.With({item::LogicalName(of.queue.name)}).Add(static_cast<double>(of.messages));
    base::Log(base::kWarning, "what a dead instance held is given back",
              {{"instance", silent.name},
               {"queue", of.queue.ToString()},
               {"messages", of.messages},
               {"silent_for", absl::FormatDuration(silent.lasts)}});
    base::LogUnlessOk(
        base::kWarning, "those who could work on it learn it late",
        bus_->Publish({self_, bus::CloudQueueWorkDetectedTriggerEvent{of.queue.account,
                                                                      of.queue.name, of.messages}}),
        {{"queue", of.queue.ToString()}});
  }
  return true;
}

}  // namespace muster::host
