// SPDX-License-Identifier: Apache-2.0

// AgentMetrics: what the leading agent sees, wants and promises, by target, read at each scrape. An
// agent that does not lead shows none of it, so that the numbers of two agents are never added up.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "muster/telemetry/registry.h"
#include "services/scaling-agent/agent.h"

namespace muster::scaling_agent {

// Thread-safe.
class AgentMetrics {
 public:
  // Neither is owned; both outlive it. No registry: nothing is read.
  AgentMetrics(const Agent* agent, telemetry::Registry* registry);

 private:
  absl::Status Read(telemetry::Samples* samples) const;

  const Agent* const agent_;  // not owned
  std::unique_ptr<telemetry::Reading> reading_;
};

}  // namespace muster::scaling_agent
