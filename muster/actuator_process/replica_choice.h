// Which replicas go when a target shrinks.
#pragma once

#include <string>
#include <vector>

#include "muster/actuator/actuator.h"

namespace muster::actuator_process {

// The names of `count` of `replicas`, or of all if there are fewer: those first that are named in
// `let_go_first`, in its order; then those that are not ready, then the ready ones, each time the
// newest first.
std::vector<std::string> ChooseToGo(std::vector<actuator::Replica> replicas,
                                    const std::vector<std::string>& let_go_first, int count);

}  // namespace muster::actuator_process
