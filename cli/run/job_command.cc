// SPDX-License-Identifier: Apache-2.0

// muster job apply | list | get | delete | check FILE
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cli/output/environment.h"
#include "cli/output/format.h"
#include "cli/run/commands.h"
#include "cli/run/handler_place.h"
#include "cli/server/mesh_client.h"
#include "cli/server/options.h"
#include "muster/args/command.h"
#include "muster/args/option.h"
#include "muster/base/proto_time.h"
#include "muster/base/status.h"
#include "muster/job/job_file.h"
#include "muster/v1/job_service.grpc.pb.h"
#include "nlohmann/json.hpp"
#include "services/processor/job_handler.h"

namespace muster::cli {
namespace {

using nlohmann::ordered_json;
using Stub = v1::JobService::Stub;

// As much of a revision as people compare.
constexpr size_t kShownRevision = 12;

struct JobOptions {
  CommonOptions common;
  std::string file;
  std::string name;
  std::string expected_revision;
  bool must_be_new = false;
  bool no_start = false;
};

absl::StatusOr<std::unique_ptr<MeshClient>> OpenMesh(const JobOptions& options) {
  return MeshClient::Open(options.common, "jobs are kept by a server");
}

std::string GroupNames(const v1::Job& job) {
  return absl::StrJoin(job.schema().groups(), ", ",
                       [](std::string* out, const auto& group) { out->append(group.name()); });
}

ordered_json JobJson(const v1::Job& job) {
  ordered_json groups = ordered_json::array();
  for (const v1::GroupSchema& group : job.schema().groups()) groups.push_back(group.name());
  return {{"job", job.name()},
          {"revision", job.revision()},
          {"updated", Rfc3339(base::FromProto(job.updated()))},
          {"groups", groups}};
}

// A server does not know what the file is called.
absl::Status WithFileName(const absl::Status& status, const std::string& file) {
  if (!absl::IsInvalidArgument(status)) return status;
  const std::vector<std::string> lines = absl::StrSplit(status.message(), '\n');
  return absl::InvalidArgumentError(
      absl::StrJoin(lines, "\n", [&file](std::string* out, const std::string& line) {
        absl::StrAppend(out, file, ":", line);
      }));
}

absl::Status Apply(const JobOptions& options, const Environment& environment) {
  MUSTER_ASSIGN_OR_RETURN(const auto mesh, OpenMesh(options));
  MUSTER_ASSIGN_OR_RETURN(const std::string text, job::ReadJobText(options.file));
  v1::ApplyJobRequest request;
  request.set_definition(text);
  if (options.must_be_new || !options.expected_revision.empty()) {
    request.set_expected_revision(options.expected_revision);
  }
  const auto applied = mesh->Call(&Stub::ApplyJob, request);
  if (!applied.ok()) return WithFileName(applied.status(), options.file);
  const v1::Job& job = applied->job();
  ordered_json json = JobJson(job);
  json["revised"] = applied->revised();
  if (PrintIfStructured(json, options.common, environment)) return absl::OkStatus();
  *environment.out << "job " << Printable(job.name()) << " is at revision "
                   << job.revision().substr(0, kShownRevision)
                   << (applied->revised() ? "" : ", as before") << "\n";
  return absl::OkStatus();
}

absl::Status List(const JobOptions& options, const Environment& environment) {
  MUSTER_ASSIGN_OR_RETURN(const auto mesh, OpenMesh(options));
  MUSTER_ASSIGN_OR_RETURN(const std::vector<v1::Job> listed, mesh->Jobs());
  Table table;
  table.AddColumns({"job", "revision", "updated", "groups"});
  ordered_json json = ordered_json::array();
  for (const v1::Job& job : listed) {
    table.AddRow({job.name(), job.revision().substr(0, kShownRevision),
                  Rfc3339(base::FromProto(job.updated())), GroupNames(job)});
    json.push_back(JobJson(job));
  }
  PrintRows(table, json, options.common, environment);
  return absl::OkStatus();
}

// The definition itself, so that it can be edited and applied again.
absl::Status Get(const JobOptions& options, const Environment& environment) {
  MUSTER_ASSIGN_OR_RETURN(const auto mesh, OpenMesh(options));
  MUSTER_ASSIGN_OR_RETURN(const v1::Job job, mesh->Job(options.name));
  ordered_json json = JobJson(job);
  json["definition"] = job.definition();
  if (PrintIfStructured(json, options.common, environment)) return absl::OkStatus();
  *environment.out << job.definition();
  if (!absl::EndsWith(job.definition(), "\n")) *environment.out << "\n";
  return absl::OkStatus();
}

absl::Status Delete(const JobOptions& options, const Environment& environment) {
  MUSTER_ASSIGN_OR_RETURN(const auto mesh, OpenMesh(options));
  v1::DeleteJobRequest request;
  request.set_name(options.name);
  MUSTER_RETURN_IF_ERROR(mesh->Call(&Stub::DeleteJob, request).status());
  const ordered_json json = {{"job", options.name}, {"deleted", true}};
  if (!PrintIfStructured(json, options.common, environment)) {
    *environment.out << "job " << Printable(options.name)
                     << " is deleted; its batches and their reports stay\n";
  }
  return absl::OkStatus();
}

// The output for a correct file; errors in a file go to stderr, as with every command.
ordered_json CheckedJson(const std::string& file, const std::string& job,
                         const std::string& revision) {
  return {{"file", file}, {"job", job}, {"revision", revision}};
}

// What the server that would get the job says of it.
absl::Status CheckOnServer(const JobOptions& options, const Environment& environment) {
  MUSTER_ASSIGN_OR_RETURN(const auto mesh, OpenMesh(options));
  MUSTER_ASSIGN_OR_RETURN(const std::string text, job::ReadJobText(options.file));
  v1::CheckJobRequest request;
  request.set_definition(text);
  MUSTER_ASSIGN_OR_RETURN(const auto checked, mesh->Call(&Stub::CheckJob, request));
  if (!checked.problems().empty()) {
    const auto append = [](std::string* out, const v1::JobProblem& problem) {
      absl::StrAppend(out, problem.line(), ":", problem.column(), ": ", problem.message());
    };
    return WithFileName(absl::InvalidArgumentError(absl::StrJoin(checked.problems(), "\n", append)),
                        options.file);
  }
  const ordered_json json =
      CheckedJson(options.file, checked.job().name(), checked.job().revision());
  if (PrintIfStructured(json, options.common, environment)) return absl::OkStatus();
  *environment.out << options.file << ": job " << Printable(checked.job().name())
                   << " is fine (revision " << checked.job().revision().substr(0, kShownRevision)
                   << ")\n";
  return absl::OkStatus();
}

// As far as a job can be checked without its input: the file, and that its handler is there, finds
// the columns and groups that it needs, and starts where it is a program.
absl::Status Check(const JobOptions& options, const Environment& environment) {
  if (options.common.server.named()) return CheckOnServer(options, environment);
  const std::string& file = options.file;
  MUSTER_ASSIGN_OR_RETURN(const job::JobDefinition job, job::LoadJobFile(file));
  processor::HandlerAccess access;
  access.allow_plaintext =
      true;  // the check calls no server; the processor that runs the job decides on TLS
  MUSTER_ASSIGN_OR_RETURN(const processor::JobHandler handler,
                          FindHandlerOf(job, file, access, environment));
  const std::string place = HandlerPlace(job, file);
  MUSTER_RETURN_IF_ERROR(base::Annotate(handler.factory(job.schema()).status(), place));
  if (!options.no_start && handler.try_start) {
    MUSTER_RETURN_IF_ERROR(base::Annotate(handler.try_start(), place));
  }
  ordered_json json = CheckedJson(file, job.name, job.revision);
  json["handler_version"] = handler.version;
  if (PrintIfStructured(json, options.common, environment)) return absl::OkStatus();
  *environment.out << file << ": job " << job.name << " is fine (revision "
                   << job.revision.substr(0, kShownRevision) << ", handler version "
                   << handler.version << ")\n";
  return absl::OkStatus();
}

}  // namespace

void AddJob(CLI::App* app, const Environment& environment) {
  CLI::App* const parent = args::AddSubcommand(app, "job", "Look after jobs");
  args::RequireSubcommand(parent);
  const auto options = std::make_shared<JobOptions>();
  const auto add_verb = [&](const char* name, const char* about, auto verb) {
    return AddServerVerb(parent, {name, about}, options, verb, environment);
  };
  CLI::App* const apply = add_verb("apply", "Make a job, or replace its definition", Apply);
  add_verb("list", "All jobs of a server", List);
  CLI::App* const get = add_verb("get", "A job's definition", Get);
  CLI::App* const remove = add_verb("delete", "Forget a job; its batches stay", Delete);
  CLI::App* const check = add_verb("check", "Validate a job file without running it", Check);
  for (CLI::App* const command : {apply, check}) {
    args::Add(command, "FILE", &options->file, "The job file (YAML)").Required();
  }
  args::AddFlag(check, "--no-start", &options->no_start,
                "Do not try to start the handler's program, say where its files are not");
  for (CLI::App* const command : {get, remove}) {
    args::Add(command, "JOB", &options->name, "Its name").Required();
  }
  const args::Option must_be_new =
      args::AddFlag(apply, "--new", &options->must_be_new, "Only if there is no such job");
  args::Add(apply, "--expect", &options->expected_revision,
            "Only if the job is at this revision now")
      .Excludes(must_be_new);
}

void AddServeHandler(CLI::App* app, const Environment& environment) {
  // Not for people: muster starts it.
  args::Hide(AddCommand(app, processor::kServeHandler, "Serve a linked handler", environment,
                        [&environment] { return processor::ServeHandler(*environment.handlers); }));
}

}  // namespace muster::cli
