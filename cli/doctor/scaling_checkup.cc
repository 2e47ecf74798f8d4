#include "cli/doctor/scaling_checkup.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "cli/scale/scaling_agent.h"
#include "cli/server/side_by_side.h"
#include "muster/base/status_macros.h"

namespace muster::cli {
namespace {

constexpr char kScaling[] = "scaling";

// What one agent says of itself. That it does not answer, its own finding says.
absl::StatusOr<v1::GetAgentResponse> AskAgent(const MeshClient& mesh,
                                              const v1::Instance& instance) {
  MUSTER_ASSIGN_OR_RETURN(const Peer peer,
                          mesh.Connect(instance.info().address(), "muster-scaling-agent"));
  const auto stub = v1::ScalingService::NewStub(peer.channel);
  v1::GetAgentResponse response;
  MUSTER_RETURN_IF_ERROR(
      mesh.Call(*stub, &ScalingStub::GetAgent, v1::GetAgentRequest(), &response, peer));
  return response;
}

Finding LeaderFinding(const v1::Instance& instance, const v1::GetAgentResponse& agent) {
  const std::string what = absl::StrCat("scaling agent ", instance.info().instance());
  if (!agent.rules_refusal().empty()) {
    return {Health::kWarning, what,
            absl::StrCat("refused a change of its rules: ", agent.rules_refusal()),
            "mend the file; until then the rules before it are in force"};
  }
  const std::string mode =
      absl::AsciiStrToLower(absl::StripPrefix(v1::ScalingMode_Name(agent.mode()), "SCALING_MODE_"));
  return {Health::kOk, what,
          absl::StrCat("leads; mode ", mode, ", actuator ", agent.actuator(), ", rules revision ",
                       agent.rules_revision())};
}

ScalingTargets ListTargets(const MeshClient& mesh, const v1::Instance& leader, Findings* findings) {
  const auto peer = mesh.Connect(leader.info().address(), "muster-scaling-agent");
  if (!peer.ok()) return {};
  const auto stub = v1::ScalingService::NewStub(peer->channel);
  v1::ListTargetsResponse response;
  const absl::Status listed =
      mesh.Call(*stub, &ScalingStub::ListTargets, v1::ListTargetsRequest(), &response, *peer);
  if (!listed.ok()) {
    findings->push_back({Health::kWrong, kScaling,
                         absl::StrCat("its targets cannot be looked at: ", listed.message()),
                         "see the scaling agent's log"});
  }
  return {response.targets().begin(), response.targets().end()};
}

void CheckTargets(const ScalingTargets& targets, Findings* findings) {
  for (const v1::ScalingTarget& target : targets) {
    if (target.trouble().empty()) continue;
    findings->push_back({Health::kWarning, absl::StrCat("scaling target ", target.target()),
                         target.trouble(),
                         absl::StrCat("`muster scale explain --target ", target.target(),
                                      "` says what was decided with it")});
  }
}

bool StartsReplicas(const v1::GetAgentResponse& agent) {
  const bool has_replicas = agent.actuator() == "process" || agent.actuator() == "kubernetes";
  return agent.mode() == v1::SCALING_MODE_ACT && has_replicas;
}

}  // namespace

ScalingTargets CheckScaling(const MeshClient& mesh, const std::vector<v1::Instance>& instances,
                            Findings* findings) {
  std::vector<v1::Instance> agents;
  for (const v1::Instance& instance : instances) {
    const bool serves = !instance.leaving() && !instance.info().address().empty();
    if (serves && instance.info().role() == v1::ROLE_SCALING_AGENT) agents.push_back(instance);
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
    if (StartsReplicas(*answers[i])) started = targets;
  }
  if (led) return started;
  findings->push_back({Health::kWrong, kScaling,
                       absl::StrCat("no scaling agent that is heard leads (heard: ", agents.size(),
                                    "): nothing is scaled"),
                       "one leads within seconds of another's end; otherwise see their logs"});
  return {};
}

}  // namespace muster::cli
