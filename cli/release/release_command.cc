// SPDX-License-Identifier: Apache-2.0

// muster release NAME [--status | --arm]
#include <memory>
#include <string>
#include <utility>

#include "cli/output/environment.h"
#include "cli/output/format.h"
#include "cli/release/commands.h"
#include "cli/release/release_view.h"
#include "cli/server/mesh_client.h"
#include "cli/server/options.h"
#include "muster/args/option.h"
#include "muster/base/status.h"
#include "muster/v1/release_service.grpc.pb.h"

namespace muster::cli {
namespace {

using Stub = v1::ReleaseService::Stub;

struct ReleaseOptions {
  CommonOptions common;
  std::string name;
  bool status = false;
  bool arm = false;
};

absl::StatusOr<v1::ReleaseStatus> GetStatus(const MeshClient& mesh, const std::string& name) {
  v1::GetReleaseRequest request;
  request.set_name(name);
  MUSTER_ASSIGN_OR_RETURN(auto response, mesh.Call(&Stub::GetRelease, request));
  return std::move(*response.mutable_status());
}

absl::StatusOr<v1::ReleaseStatus> Release(const MeshClient& mesh, const std::string& name) {
  v1::ReleaseRequest request;
  request.set_name(name);
  MUSTER_ASSIGN_OR_RETURN(auto response, mesh.Call(&Stub::Release, request));
  return std::move(*response.mutable_status());
}

absl::StatusOr<v1::ReleaseStatus> Arm(const MeshClient& mesh, const std::string& name) {
  v1::ArmRequest request;
  request.set_name(name);
  MUSTER_ASSIGN_OR_RETURN(auto response, mesh.Call(&Stub::Arm, request));
  return std::move(*response.mutable_status());
}

absl::Status Run(const ReleaseOptions& options, const Environment& environment) {
  MUSTER_ASSIGN_OR_RETURN(const auto mesh,
                          MeshClient::Open(options.common, "releases are kept by a server"));
  const auto act = options.status ? GetStatus : options.arm ? Arm : Release;
  MUSTER_ASSIGN_OR_RETURN(v1::ReleaseStatus status, act(*mesh, options.name));
  const ReleaseView view(std::move(status));
  if (PrintIfStructured(view.Json(), options.common, environment)) return absl::OkStatus();
  const bool releases = !options.status && !options.arm;
  *environment.out << Printable(releases ? view.ReleasedSummary() : view.Summary()) << "\n";
  if (options.status) view.Workers().PrintTo(*environment.out);
  return absl::OkStatus();
}

}  // namespace

void AddRelease(CLI::App* app, const Environment& environment) {
  const auto options = std::make_shared<ReleaseOptions>();
  CLI::App* const command =
      AddServerVerb(app, {"release", "Let the processors go that wait with --standby NAME"},
                    options, Run, environment);
  args::Add(command, "NAME", &options->name, "Of the release").Required();
  const args::Option status = args::AddFlag(command, "--status", &options->status,
                                            "Only show who is parked, and who left when");
  args::AddFlag(command, "--arm", &options->arm,
                "Have processors that start from now on park again")
      .Excludes(status);
}

}  // namespace muster::cli
