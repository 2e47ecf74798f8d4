// Which replicas go when a target shrinks.
#pragma once

#include <string>
#include <vector>

#include "muster/actuator/actuator.h"

namespace muster::actuator_process {

// The names of `count` of `replicas`, or of all if there are fewer, by the order of departure.
std::vector<std::string> ChooseForScaleDown(std::vector<actuator::Replica> replicas,
                                            const std::vector<std::string>& let_go_first,
                                            int count);

}  // namespace muster::actuator_process
