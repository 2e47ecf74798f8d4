// SPDX-License-Identifier: Apache-2.0

// An agent for tests, with one target, "work":
//
//   actuate_processes FOLDER KEEPER DRAIN_GRACE UNATTENDED_LIMIT PROGRAM [ARGUMENT…]
//
// Each line of stdin is a fencing token, a number of replicas, and the names of the replicas that
// should go first; an empty line only observes. The program answers each line with a line of JSON.
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "muster/actuator/process/process_actuator.h"
#include "muster/base/quantity.h"
#include "nlohmann/json.hpp"

namespace {

using muster::actuator::Order;
using muster::actuator::Outcome;
using muster::actuator::Replica;
using muster::actuator::ReplicaState;
using muster::actuator::process::ProcessActuator;
using nlohmann::json;

constexpr char kTarget[] = "work";
constexpr int kFixedArguments = 5;

const char* NameOf(ReplicaState state) {
  switch (state) {
    case ReplicaState::kStarting:
      return "starting";
    case ReplicaState::kReady:
      return "ready";
    case ReplicaState::kParked:
      return "parked";
    case ReplicaState::kDraining:
      return "draining";
  }
  return "";
}

json Look(ProcessActuator* actuator) {
  const auto state = actuator->Observe(kTarget);
  if (!state.ok()) return {{"error", state.status().ToString()}};
  json replicas = json::object();
  for (const Replica& replica : state->replicas) replicas[replica.name] = NameOf(replica.state);
  return {{"wanted", state->wanted}, {"replicas", replicas}, {"trouble", state->trouble}};
}

json Carry(ProcessActuator* actuator, const std::string& line) {
  const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
  Order order;
  order.target = kTarget;
  order.decision = line;
  if (words.size() < 2 || !absl::SimpleAtoi(words[0], &order.fencing_token) ||
      !absl::SimpleAtoi(words[1], &order.replicas)) {
    return {{"error", "not an order"}};
  }
  order.let_go_first.assign(words.begin() + 2, words.end());
  const absl::StatusOr<Outcome> outcome = actuator->Apply(order);
  if (!outcome.ok()) return {{"error", outcome.status().ToString()}};
  return {{"before", outcome->before}, {"after", outcome->after}, {"detail", outcome->detail}};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc <= kFixedArguments) return 2;
  const auto grace = muster::base::ParseDuration(argv[3]);
  const auto unattended = muster::base::ParseDuration(argv[4]);
  if (!grace.ok() || !unattended.ok()) return 2;
  muster::actuator::process::Options options;
  options.folder = argv[1];
  options.keeper = argv[2];
  options.drain_grace = *grace;
  options.unattended_limit = *unattended;
  options.targets[kTarget] = {
      argv[kFixedArguments], std::vector<std::string>(argv + kFixedArguments + 1, argv + argc), {}};
  const auto actuator = ProcessActuator::Open(options, muster::base::RealClock());
  if (!actuator.ok()) {
    std::cerr << actuator.status() << std::endl;
    return 1;
  }
  for (std::string line; std::getline(std::cin, line);) {
    const json answer = line.empty() ? Look(actuator->get()) : Carry(actuator->get(), line);
    std::cout << answer.dump() << std::endl;
  }
}
