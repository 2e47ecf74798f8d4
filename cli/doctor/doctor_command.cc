// muster doctor
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/time/time.h"
#include "cli/doctor/finding.h"
#include "cli/doctor/mesh_checkup.h"
#include "cli/doctor/nats_checkup.h"
#include "cli/output/environment.h"
#include "cli/server/place.h"
#include "muster/base/status_macros.h"
#include "muster/item/queue_names.h"
#include "services/host/host_options.h"

namespace muster::cli {
namespace {

struct DoctorOptions {
  CommonOptions common;
  std::string account = item::kLocalAccount;
  NatsCheckOptions nats;
};

// Longer than a mesh that is well takes, and short enough to ask all that there is to ask.
constexpr absl::Duration kPatience = absl::Seconds(3);

// What NATS lacks may be the reason why the initiator does not answer, so it is told first.
absl::Status Examine(const DoctorOptions& options, const Environment& environment) {
  MUSTER_RETURN_IF_ERROR(RequireServer(options.common, "the doctor looks at a mesh"));
  CommonOptions common = options.common;
  if (!common.server.timeout.has_value()) common.server.timeout = kPatience;
  Findings findings = CheckNats(options.nats);
  absl::StatusOr<Findings> mesh = CheckMesh(common, options.account, MUSTER_VERSION, environment);
  if (mesh.ok()) {
    const auto at = options.nats.url.empty() ? findings.begin() : findings.end();
    findings.insert(at, mesh->begin(), mesh->end());
  } else {
    findings.push_back({Health::kWrong, "initiator", std::string(mesh.status().message()),
                        "see whether muster-initiator runs there"});
  }
  PrintFindings(findings, options.common.output, environment);
  // It is told already, among the findings.
  if (!mesh.ok()) environment.exit_code = ExitCodeOf(mesh.status());
  return absl::OkStatus();
}

}  // namespace

void AddDoctor(CLI::App* app, const Environment& environment) {
  CLI::App* const command = app->add_subcommand(
      "doctor", "What of a mesh can be reached, what is wrong with it, and how to mend that");
  const auto options = std::make_shared<DoctorOptions>();
  AddServer(command, &options->common);
  AddOutput(command, &options->common, Csv::kNo);
  command->add_option("--account", options->account, "Whose queues")->capture_default_str();
  command->add_option("--nats", options->nats.url, "The NATS server too, such as nats://host:4222")
      ->envname("MUSTER_NATS");
  command->add_option("--bucket", options->nats.bucket, "Of the services' records and blobs there")
      ->envname("MUSTER_BUCKET")
      ->capture_default_str();
  command->add_option("--replicas", options->nats.replicas, "Of what the services store there")
      ->envname("MUSTER_REPLICAS")
      ->check(CLI::IsMember({1, 3, 5}))
      ->capture_default_str();
  command
      ->add_option("--ack-survives", options->nats.ack_survives,
                   "What the services say that its acknowledgements survive: process or power")
      ->transform(CLI::CheckedTransformer(std::map<std::string, queue::Survives>{
          {"process", queue::Survives::kProcess}, {"power", queue::Survives::kPower}}))
      ->envname("MUSTER_ACK_SURVIVES")
      ->type_name("")
      ->default_str("process");
  command->callback([options, command, &environment] {
    host::TakeRefusedVariables(command);
    if (const absl::Status status = Examine(*options, environment); !status.ok()) {
      environment.Fail(status);
    }
  });
}

}  // namespace muster::cli
