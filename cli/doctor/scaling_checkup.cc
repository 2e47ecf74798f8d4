// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor/scaling_checkup.h"

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "cli/output/format.h"
#include "cli/scale/agent_client.h"
#include "muster/base/status.h"
#include "muster/client/scaling_client.h"

namespace muster::cli {
namespace {

constexpr char kScaling[] = "scaling";

// What one agent says of itself. That it does not answer, its own finding says.
absl::StatusOr<v1::GetAgentResponse> AskAgent(const MeshClient& mesh,
                                              const v1::Instance& instance) {
  MUSTER_ASSIGN_OR_RETURN(const Peer peer,
                          mesh.Connect(instance.info().address(), "muster-scaling-agent"));
  return mesh.Call(&ScalingStub::GetAgent, {}, peer);
}

Finding LeaderFinding(const v1::Instance& instance, const v1::GetAgentResponse& agent) {
  const std::string what = absl::StrCat("scaling agent ", instance.info().instance());
  if (!agent.rules_refusal().empty()) {
    return {Health::kWarning, what,
            absl::StrCat("refused a change of its rules: ", agent.rules_refusal()),
            "mend the file; until then the rules before it are in force"};
  }
  const std::string mode = EnumName(v1::ScalingMode_Name(agent.mode()), "SCALING_MODE_");
  return {Health::kOk, what,
          absl::StrCat("leads; mode ", mode, ", actuator ", agent.actuator(), ", rules revision ",
                       agent.rules_revision())};
}

ScalingTargets ListTargets(const MeshClient& mesh, const v1::Instance& leader, Findings* findings) {
  const auto peer = mesh.Connect(leader.info().address(), "muster-scaling-agent");
  if (!peer.ok()) return {};
  const auto listed = mesh.Call(&ScalingStub::ListTargets, {}, *peer);
  if (!listed.ok()) {
    findings->push_back(
        {Health::kWrong, kScaling,
         absl::StrCat("its targets cannot be looked at: ", listed.status().message()),
         "see the scaling agent's log"});
    return {};
  }
  return {listed->targets().begin(), listed->targets().end()};
}

void CheckTargets(const ScalingTargets& targets, Findings* findings) {
  for (const v1::ScalingTarget& target : targets) {
    if (target.trouble().empty()) continue;
    findings->push_back({CannotStart(target) ? Health::kWrong : Health::kWarning,
                         absl::StrCat("scaling target ", target.target()), target.trouble(),
                         absl::StrCat("`muster scale explain --target ", target.target(),
                                      "` says what was decided with it")});
  }
}

}  // namespace

bool CannotStart(const v1::ScalingTarget& target) {
  return target.replicas().ready() == 0 && target.decision().replicas() > 0 &&
         !target.trouble().empty();
}

ScalingTargets CheckScaling(const MeshClient& mesh, const std::vector<v1::Instance>& instances,
                            Findings* findings) {
  std::vector<v1::Instance> agents;
  for (const v1::Instance& instance : instances) {
    const bool is_agent = instance.info().role() == v1::ROLE_SCALING_AGENT;
    if (is_agent && Serves(instance)) agents.push_back(instance);
  }
  if (agents.empty()) return {};
  const auto answers =
      ParallelMap(agents, [&](const v1::Instance& one) { return AskAgent(mesh, one); });
  bool led = false;
  ScalingTargets started;
  for (size_t i = 0; i < agents.size(); ++i) {
    if (!answers[i].ok() || !answers[i]->leads()) continue;
    led = true;
    findings->push_back(LeaderFinding(agents[i], *answers[i]));
    const ScalingTargets targets = ListTargets(mesh, agents[i], findings);
    CheckTargets(targets, findings);
    if (client::StartsReplicas(*answers[i])) started = targets;
  }
  if (led) return started;
  findings->push_back({Health::kWrong, kScaling,
                       absl::StrCat("no scaling agent that is heard leads (heard: ", agents.size(),
                                    "): nothing is scaled"),
                       "another agent leads within seconds; otherwise see the agents' logs"});
  return {};
}

}  // namespace muster::cli
