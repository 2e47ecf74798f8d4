// SPDX-License-Identifier: Apache-2.0
#include "muster/bus/trigger_bus.h"

namespace muster::bus {

InterRoleCommunicationEvent WorkDetected(absl::string_view from, absl::string_view account,
                                         absl::string_view queue, int64_t messages) {
  return {.from = std::string(from),
          .payload = CloudQueueWorkDetectedTriggerEvent{.storage_account = std::string(account),
                                                        .queue_name = std::string(queue),
                                                        .messages = messages}};
}

bool IsFor(const InterRoleCommunicationEvent& event, absl::string_view account,
           absl::string_view queue) {
  const auto* work = std::get_if<CloudQueueWorkDetectedTriggerEvent>(&event.payload);
  return work != nullptr && work->storage_account == account && work->queue_name == queue;
}

}  // namespace muster::bus
