// SPDX-License-Identifier: Apache-2.0
#include "muster/actuator/process/rolling_update.h"

#include <algorithm>

#include "muster/actuator/process/limits.h"

namespace muster::actuator::process {

RollingUpdate::RollingUpdate(int wanted, int most)
    : wanted_(wanted),
      step_(wanted == 0 ? 0 : std::max(1, wanted / kReplacedShare)),
      spare_(std::clamp(most - wanted, 0, step_)) {}

int RollingUpdate::ToStart(const ServingCount& serving) const {
  const int missing = std::max(0, wanted_ - serving.total());
  // The next ones wait until those before are ready. A program that ends at once therefore costs no
  // more than one step.
  const int ahead = spare_ > 0 ? spare_ : step_;
  const int due = std::min(ahead, serving.outdated) - serving.starting - missing;
  const int room = wanted_ + ahead - serving.total() - missing;
  return missing + std::max(0, std::min(due, room));
}

RollingUpdate::Departures RollingUpdate::ToLetGo(const ServingCount& serving) const {
  const int at_work = spare_ > 0 ? serving.total() - serving.starting : serving.total();
  Departures departures;
  departures.outdated = std::clamp(at_work - wanted_, 0, serving.outdated);
  const int stay = serving.outdated - departures.outdated;
  const int spared = std::min({spare_, serving.starting, stay});
  departures.surplus = std::max(0, serving.total() - departures.outdated - wanted_ - spared);
  return departures;
}

}  // namespace muster::actuator::process
