// SPDX-License-Identifier: Apache-2.0

// muster partition list | move | rebalance | forget
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "cli/output/environment.h"
#include "cli/output/format.h"
#include "cli/partition/commands.h"
#include "cli/partition/partition_row.h"
#include "cli/server/mesh_client.h"
#include "cli/server/options.h"
#include "muster/args/command.h"
#include "muster/args/option.h"
#include "muster/base/clock.h"
#include "muster/base/status.h"
#include "muster/os/stop_signals.h"
#include "muster/v1/partition_service.grpc.pb.h"
#include "nlohmann/json.hpp"

namespace muster::cli {
namespace {

using nlohmann::ordered_json;
using Stub = v1::PartitionService::Stub;

// Between two looks of a watch: members change something once in a cycle of some seconds.
constexpr absl::Duration kWatchInterval = absl::Seconds(1);

struct PartitionOptions {
  CommonOptions common;
  std::string group;      // of list, empty: all
  std::string queue;      // of list, empty: all
  std::string partition;  // of move: GROUP/NUMBER
  std::string member;     // of move
  bool watch = false;
};

absl::StatusOr<std::unique_ptr<MeshClient>> OpenMesh(const PartitionOptions& options) {
  return MeshClient::Open(options.common, "groups of partitions are kept by a server");
}

// Groups are named "QUEUE" or "STREAM/GROUP".
bool Reads(const std::string& group, const std::string& queue) {
  return queue.empty() || group == queue || absl::StartsWith(group, absl::StrCat(queue, "/"));
}

absl::StatusOr<std::vector<std::string>> FindGroups(const MeshClient& mesh,
                                                    const PartitionOptions& options) {
  if (!options.group.empty()) return std::vector<std::string>{options.group};
  std::vector<std::string> groups;
  MUSTER_RETURN_IF_ERROR(mesh.CallForPages(&Stub::ListGroups, v1::ListGroupsRequest(),
                                           [&](const v1::ListGroupsResponse& page) {
                                             for (const v1::MemberGroup& group : page.groups()) {
                                               if (Reads(group.group(), options.queue))
                                                 groups.push_back(group.group());
                                             }
                                           }));
  if (!groups.empty() || options.queue.empty()) return groups;
  return absl::NotFoundError(
      absl::StrCat("no group shares the partitions of '", options.queue, "'"));
}

absl::StatusOr<std::vector<PartitionRow>> Look(const MeshClient& mesh,
                                               const PartitionOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> groups, FindGroups(mesh, options));
  std::vector<PartitionRow> rows;
  for (const std::string& group : groups) {
    v1::ListPartitionsRequest request;
    request.set_group(group);
    const absl::Status listed = mesh.CallForPages(
        &Stub::ListPartitions, request, [&](const v1::ListPartitionsResponse& page) {
          for (const v1::PartitionView& view : page.partitions()) rows.push_back({group, view});
        });
    // Forgotten since the groups were listed.
    if (absl::IsNotFound(listed) && options.group.empty()) continue;
    MUSTER_RETURN_IF_ERROR(listed);
  }
  return rows;
}

void Print(const std::vector<PartitionRow>& rows, const PartitionOptions& options,
           const Environment& environment) {
  Table table = PartitionRow::Columns();
  ordered_json json = ordered_json::array();
  for (const PartitionRow& row : rows) {
    table.AddRow(row.Cells(environment.clock->Now()));
    json.push_back(row.Json());
  }
  PrintRows(table, json, options.common, environment);
}

// A table of the rows that are new or have changed, or one JSON object a line.
void PrintChanges(const std::vector<PartitionRow>& rows, const PartitionOptions& options,
                  const Environment& environment) {
  if (rows.empty()) return;
  switch (options.common.output) {
    case OutputFormat::kJson:
      for (const PartitionRow& row : rows) {
        *environment.out << Structured(row.Json(), OutputFormat::kJson);
      }
      break;
    case OutputFormat::kYaml:  // so far a sequence that grows
      for (const PartitionRow& row : rows) *environment.out << YamlItem(row.Json(), 0);
      break;
    default:
      Print(rows, options, environment);
  }
  environment.out->flush();
}

absl::Status Watch(const PartitionOptions& options, const Environment& environment) {
  if (options.common.output == OutputFormat::kCsv) {
    return absl::InvalidArgumentError("--watch writes tables, JSON or YAML, not CSV");
  }
  const os::StopSignals signals({.grace = absl::Seconds(5),
                                 .exit_code = kInterrupted,
                                 .when_late = "muster: stopped",
                                 .when_hurried = "muster: stopped"});
  MUSTER_ASSIGN_OR_RETURN(const auto mesh, OpenMesh(options));
  std::map<std::pair<std::string, int>, std::string> shown;
  while (!signals.token().stop_requested()) {
    MUSTER_ASSIGN_OR_RETURN(const std::vector<PartitionRow> rows, Look(*mesh, options));
    std::vector<PartitionRow> changed;
    std::map<std::pair<std::string, int>, std::string> seen;
    for (const PartitionRow& row : rows) {
      const std::pair<std::string, int> key(row.group, row.view.partition());
      seen[key] = row.Watched();
      const auto before = shown.find(key);
      if (before == shown.end() || before->second != seen[key]) changed.push_back(row);
    }
    shown.swap(seen);
    PrintChanges(changed, options, environment);
    if (!environment.out->good()) return absl::OkStatus();  // muster::cli::Main tells why
    base::SleepUnlessStopped(environment.clock, kWatchInterval, signals.token());
  }
  return absl::CancelledError("stopped");
}

absl::Status List(const PartitionOptions& options, const Environment& environment) {
  if (options.watch) return Watch(options, environment);
  MUSTER_ASSIGN_OR_RETURN(const auto mesh, OpenMesh(options));
  MUSTER_ASSIGN_OR_RETURN(const std::vector<PartitionRow> rows, Look(*mesh, options));
  Print(rows, options, environment);
  return absl::OkStatus();
}

absl::Status Move(const PartitionOptions& options, const Environment& environment) {
  MUSTER_ASSIGN_OR_RETURN(const auto named, ParsePartition(options.partition));
  MUSTER_ASSIGN_OR_RETURN(const auto mesh, OpenMesh(options));
  v1::MovePartitionRequest request;
  request.set_group(named.first);
  request.set_partition(named.second);
  request.set_member(options.member);
  MUSTER_ASSIGN_OR_RETURN(const auto moved, mesh->Call(&Stub::MovePartition, request));
  const PartitionRow row{named.first, moved.partition()};
  if (PrintIfStructured(row.Json(), options.common, environment)) return absl::OkStatus();
  *environment.out << "partition " << named.second << " of " << named.first;
  if (row.view.owner() == options.member) {
    *environment.out << " stays with " << options.member << "\n";
  } else {
    *environment.out << " goes to " << options.member << ", when "
                     << (row.view.owner().empty() ? "it looks for work"
                                                  : row.view.owner() + " has finished with it")
                     << "\n";
  }
  return absl::OkStatus();
}

absl::Status Rebalance(const PartitionOptions& options, const Environment& environment) {
  MUSTER_ASSIGN_OR_RETURN(const auto mesh, OpenMesh(options));
  v1::RebalanceRequest request;
  request.set_group(options.group);
  MUSTER_ASSIGN_OR_RETURN(const auto done, mesh->Call(&Stub::Rebalance, request));
  const ordered_json json = {{"group", options.group}, {"unpinned", done.unpinned()}};
  if (PrintIfStructured(json, options.common, environment)) return absl::OkStatus();
  *environment.out << options.group << ": "
                   << Counted(static_cast<uint64_t>(done.unpinned()), "partition")
                   << " may move again; members spread all evenly in their next cycles\n";
  return absl::OkStatus();
}

absl::Status Forget(const PartitionOptions& options, const Environment& environment) {
  MUSTER_ASSIGN_OR_RETURN(const auto mesh, OpenMesh(options));
  v1::ForgetGroupRequest request;
  request.set_group(options.group);
  MUSTER_RETURN_IF_ERROR(mesh->Call(&Stub::ForgetGroup, request).status());
  const ordered_json json = {{"group", options.group}, {"answer", "forgotten"}};
  if (PrintIfStructured(json, options.common, environment)) return absl::OkStatus();
  *environment.out << options.group << " is forgotten\n";
  return absl::OkStatus();
}

}  // namespace

void AddPartition(CLI::App* app, const Environment& environment) {
  CLI::App* const parent = args::AddSubcommand(
      app, "partition", "Show who works on which partition, and move partitions");
  args::RequireSubcommand(parent);
  const auto options = std::make_shared<PartitionOptions>();
  CLI::App* const list = AddServerVerb(
      parent, {"list", "Owner, epoch, checkpoint and lag of each partition", Csv::kYes}, options,
      List, environment);
  const args::Option group = args::Add(list, "GROUP", &options->group, "This group only");
  args::Add(list, "--queue", &options->queue, "Only groups that read this queue or stream")
      .Excludes(group);
  args::AddFlag(list, "--watch", &options->watch, "Go on, and show each partition that changes");
  CLI::App* const move =
      AddServerVerb(parent, {"move", "Give a partition to a member, and keep it there"}, options,
                    Move, environment);
  args::Add(move, "PARTITION", &options->partition, "GROUP/NUMBER, such as orders/main/3")
      .Required()
      .Check([](const std::string& text) {
        return std::string(ParsePartition(text).status().message());
      });
  args::Add(move, "--to", &options->member, "The member").Required().TypeName("INSTANCE");
  args::Add(AddServerVerb(parent, {"rebalance", "Spread evenly again, also what was moved"},
                          options, Rebalance, environment),
            "GROUP", &options->group, "As list shows it")
      .Required();
  args::Add(
      AddServerVerb(parent, {"forget", "Remove a group that is done with, and its checkpoints"},
                    options, Forget, environment),
      "GROUP", &options->group, "As list shows it")
      .Required();
}

}  // namespace muster::cli
