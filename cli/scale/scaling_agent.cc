#include "cli/scale/scaling_agent.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/server/place.h"
#include "muster/base/status_macros.h"

namespace muster::cli {

absl::StatusOr<std::unique_ptr<ScalingAgentClient>> ScalingAgentClient::Find(
    const CommonOptions& options) {
  MUSTER_RETURN_IF_ERROR(RequireServer(options, "the scaling agent is found by a server"));
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<MeshClient> mesh, MeshClient::Open(options.server));
  return std::unique_ptr<ScalingAgentClient>(new ScalingAgentClient(std::move(mesh)));
}

ScalingAgentClient::ScalingAgentClient(std::unique_ptr<MeshClient> mesh)
    : mesh_(std::move(mesh)), leading_([this] { return Addresses(); }, mesh_->channel_options()) {}

absl::StatusOr<std::vector<std::string>> ScalingAgentClient::Addresses() {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<v1::Instance> instances,
                          mesh_->Instances(v1::ROLE_SCALING_AGENT));
  std::vector<std::string> addresses;
  for (const v1::Instance& instance : instances) {
    const bool serves = !instance.leaving() && !instance.info().address().empty();
    if (serves) addresses.push_back(instance.info().address());
  }
  if (!addresses.empty()) return addresses;
  return absl::UnavailableError(
      absl::StrCat(mesh_->options().address,
                   ": it has heard of no scaling agent; start one with muster-scaling-agent "
                   "--rules FILE"));
}

}  // namespace muster::cli
