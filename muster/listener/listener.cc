#include "muster/listener/listener.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/listener/elastic_listener.h"
#include "muster/listener/listener_options.h"

namespace muster::listener {

absl::StatusOr<std::unique_ptr<QueueListener>> QueueListener::Create(
    ListenerOptions options, ListenerEvents events, SubscriberFactory subscribers,
    queue::QueueStore* store, bus::TriggerBus* bus, base::Clock* clock) {
  MUSTER_RETURN_IF_ERROR(ValidateListenerOptions(options, store->traits()));
  if (!subscribers) return absl::InvalidArgumentError("a listener needs a subscriber factory");
  if (!options.work_rule) options.work_rule = DefaultWorkRule();
  return std::make_unique<ElasticListener>(std::move(options), std::move(events),
                                           std::move(subscribers), store, bus, clock);
}

}  // namespace muster::listener
