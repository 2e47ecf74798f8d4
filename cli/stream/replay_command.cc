// SPDX-License-Identifier: Apache-2.0

// muster partition replay
#include <memory>
#include <string>

#include "cli/output/environment.h"
#include "cli/output/format.h"
#include "cli/server/options.h"
#include "cli/stream/commands.h"
#include "cli/stream/stream_admin.h"
#include "muster/args/command.h"
#include "muster/args/option.h"
#include "muster/base/status.h"
#include "nlohmann/json.hpp"

namespace muster::cli {
namespace {

struct ReplayCommandOptions {
  CommonOptions common;
  std::string partition;
  std::string group;
  int64_t from = 0;
};

absl::Status Replay(const ReplayCommandOptions& options, const Environment& environment) {
  MUSTER_ASSIGN_OR_RETURN(const PartitionName partition, ParsePartition(options.partition));
  MUSTER_ASSIGN_OR_RETURN(const auto admin,
                          OpenStreamAdmin(options.common, Access::kChange, environment));
  MUSTER_ASSIGN_OR_RETURN(const int64_t offset,
                          admin->Replay(partition, options.group, options.from));
  const nlohmann::ordered_json json = {{"stream", partition.stream},
                                       {"partition", partition.partition},
                                       {"group", options.group},
                                       {"offset", offset}};
  if (PrintIfStructured(json, options.common, environment)) return absl::OkStatus();
  *environment.out << "group " << options.group << " goes on at offset " << offset << " of "
                   << options.partition << "\n";
  return absl::OkStatus();
}

}  // namespace

void AddPartitionReplay(CLI::App* app, const Environment& environment) {
  CLI::App* const family = args::FindSubcommand(app, "partition");
  const auto options = std::make_shared<ReplayCommandOptions>();
  CLI::App* const command =
      AddCommand(family, "replay", "Move a group's checkpoint of a stream, while the group runs",
                 environment, [options, &environment] { return Replay(*options, environment); });
  args::Add(command, "STREAM/PARTITION", &options->partition, "For instance homes/3").Required();
  args::Add(command, "--from", &options->from,
            "The next event to handle; 0: the first that is kept")
      .Required()
      .Check(args::NonNegativeNumber());
  args::Add(command, "--group", &options->group, "Whose checkpoint: other groups notice nothing")
      .Required();
  AddDataDirOrServer(command, &options->common);
  AddOutput(command, &options->common);
}

}  // namespace muster::cli
