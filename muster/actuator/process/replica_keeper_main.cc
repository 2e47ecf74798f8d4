// SPDX-License-Identifier: Apache-2.0

// muster-replica-keeper: see replica_keeper.h.
#include <iostream>
#include <string>
#include <vector>

#include "muster/actuator/process/replica_keeper.h"

int main(int argc, char** argv) {
  const auto order = muster::actuator::process::FromArguments(
      std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc));
  if (!order.ok()) {
    std::cerr << "muster-replica-keeper: " << order.status().message() << std::endl;
    return 2;
  }
  return muster::actuator::process::Keep(*order);
}
