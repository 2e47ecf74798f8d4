// Which replicas go when a target shrinks.
#pragma once

#include <string>
#include <vector>

#include "muster/scaling/actuator/actuator.h"

namespace muster::scaling::actuator {

// The names of `count` of `replicas`, or of all if there are fewer, by the order of departure.
std::vector<std::string> ChooseForScaleDown(std::vector<Replica> replicas,
                                            const std::vector<std::string>& let_go_first,
                                            int count);

}  // namespace muster::scaling::actuator
