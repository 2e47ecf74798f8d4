// SPDX-License-Identifier: Apache-2.0

// muster schedule create | update | list | get | pause | resume | run | delete
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/output/environment.h"
#include "cli/output/format.h"
#include "cli/schedule/commands.h"
#include "cli/schedule/new_schedule.h"
#include "cli/schedule/schedule_view.h"
#include "cli/server/mesh_client.h"
#include "cli/server/options.h"
#include "muster/args/command.h"
#include "muster/args/option.h"
#include "muster/base/proto_time.h"
#include "muster/base/random.h"
#include "muster/base/status.h"
#include "muster/v1/schedule_service.grpc.pb.h"
#include "nlohmann/json.hpp"

namespace muster::cli {
namespace {

using nlohmann::ordered_json;
using Stub = v1::ScheduleService::Stub;

constexpr char kKept[] = "schedules are kept by a server";
constexpr char kSchedules[] = "muster schedule list";

struct ScheduleOptions {
  CommonOptions common;
  std::string name;
  std::string run_id;
  NewSchedule made;
};

struct UpdateOptions {
  CommonOptions common;
  ScheduleChanges changes;
};

std::string NextInWords(const v1::Schedule& schedule) {
  if (schedule.has_ended()) return "it has ended";
  if (schedule.paused()) return "it is paused";
  if (!schedule.has_next()) return "its time has come";
  return absl::StrCat("next at ", Rfc3339(base::FromProto(schedule.next())));
}

void Show(const v1::Schedule& schedule, const char* did, const CommonOptions& options,
          const Environment& environment) {
  if (PrintIfStructured(JsonOf(schedule), options, environment)) return;
  *environment.out << "schedule " << Printable(schedule.spec().name()) << did << "; "
                   << NextInWords(schedule) << "\n";
}

absl::Status Create(const ScheduleOptions& options, const Environment& environment) {
  if (options.made.cron.empty() && !options.made.is_once()) {
    args::RefuseMissing("one of --cron, --at and --in");
  }
  MUSTER_ASSIGN_OR_RETURN(const auto mesh, MeshClient::Open(options.common, kKept));
  MUSTER_ASSIGN_OR_RETURN(const v1::Schedule schedule,
                          CreateSchedule(options.made, *mesh, environment.clock));
  Show(schedule, " is made", options.common, environment);
  return absl::OkStatus();
}

absl::Status Update(const UpdateOptions& options, const Environment& environment) {
  MUSTER_ASSIGN_OR_RETURN(const auto mesh, MeshClient::Open(options.common, kKept));
  const auto schedule = UpdateSchedule(options.changes, *mesh, environment.clock);
  if (!schedule.ok()) return WithListHint(schedule.status(), kSchedules);
  Show(*schedule, " is changed", options.common, environment);
  return absl::OkStatus();
}

absl::Status List(const ScheduleOptions& options, const Environment& environment) {
  MUSTER_ASSIGN_OR_RETURN(const auto mesh, MeshClient::Open(options.common, kKept));
  std::vector<v1::Schedule> schedules;
  MUSTER_RETURN_IF_ERROR(
      mesh->CallForPages(&Stub::ListSchedules, v1::ListSchedulesRequest(), [&](const auto& page) {
        schedules.insert(schedules.end(), page.schedules().begin(), page.schedules().end());
      }));
  ordered_json json = ordered_json::array();
  for (const v1::Schedule& schedule : schedules) json.push_back(JsonOf(schedule));
  PrintRows(TableOf(schedules), json, options.common, environment);
  return absl::OkStatus();
}

absl::Status Get(const ScheduleOptions& options, const Environment& environment) {
  MUSTER_ASSIGN_OR_RETURN(const auto mesh, MeshClient::Open(options.common, kKept));
  v1::GetScheduleRequest request;
  request.set_name(options.name);
  const auto response = mesh->Call(&Stub::GetSchedule, request);
  if (!response.ok()) return WithListHint(response.status(), kSchedules);
  const ordered_json json = JsonOf(response->schedule());
  if (PrintIfStructured(json, options.common, environment)) return absl::OkStatus();
  for (const auto& [name, value] : json.items()) {
    const std::string text = value.is_string() ? value.get<std::string>()
                             : value.is_null() ? ""
                                               : value.dump();
    *environment.out << name << ": " << Printable(OrDash(text)) << "\n";
  }
  return absl::OkStatus();
}

absl::Status Pause(const ScheduleOptions& options, const Environment& environment) {
  MUSTER_ASSIGN_OR_RETURN(const auto mesh, MeshClient::Open(options.common, kKept));
  v1::PauseScheduleRequest request;
  request.set_name(options.name);
  const auto response = mesh->Call(&Stub::PauseSchedule, request);
  if (!response.ok()) return WithListHint(response.status(), kSchedules);
  Show(response->schedule(), "", options.common, environment);
  return absl::OkStatus();
}

absl::Status Resume(const ScheduleOptions& options, const Environment& environment) {
  MUSTER_ASSIGN_OR_RETURN(const auto mesh, MeshClient::Open(options.common, kKept));
  v1::ResumeScheduleRequest request;
  request.set_name(options.name);
  const auto response = mesh->Call(&Stub::ResumeSchedule, request);
  if (!response.ok()) return WithListHint(response.status(), kSchedules);
  Show(response->schedule(), " goes on", options.common, environment);
  return absl::OkStatus();
}

// Without the host's name, which may be longer than a run id.
std::string NewRunId() {
  return absl::StrCat("run-", absl::Hex(base::RandomSeed(), absl::kZeroPad16));
}

absl::Status RunNow(const ScheduleOptions& options, const Environment& environment) {
  MUSTER_ASSIGN_OR_RETURN(const auto mesh, MeshClient::Open(options.common, kKept));
  v1::RunScheduleRequest request;
  request.set_name(options.name);
  request.set_run_id(options.run_id.empty() ? NewRunId() : options.run_id);
  const auto response = mesh->Call(&Stub::RunSchedule, request);
  if (!response.ok()) return WithListHint(response.status(), kSchedules);
  const ordered_json json = {{"schedule", options.name}, {"batch", response->batch()}};
  if (PrintIfStructured(json, options.common, environment)) return absl::OkStatus();
  *environment.out << "batch " << response->batch()
                   << " is submitted\nwatch it: muster batch watch " << response->batch() << "\n";
  return absl::OkStatus();
}

absl::Status Delete(const ScheduleOptions& options, const Environment& environment) {
  MUSTER_ASSIGN_OR_RETURN(const auto mesh, MeshClient::Open(options.common, kKept));
  v1::DeleteScheduleRequest request;
  request.set_name(options.name);
  const auto response = mesh->Call(&Stub::DeleteSchedule, request);
  if (!response.ok()) return WithListHint(response.status(), kSchedules);
  const ordered_json json = {{"schedule", options.name}, {"deleted", true}};
  if (PrintIfStructured(json, options.common, environment)) return absl::OkStatus();
  *environment.out << "schedule " << Printable(options.name) << " is deleted; its batches stay\n";
  return absl::OkStatus();
}

args::Option AddCron(CLI::App* command, NewSchedule* made) {
  return args::Add(command, "--cron", &made->cron,
                   "When: minute, hour, day of month, month and day of week; or @daily");
}

void AddMore(CLI::App* command, NewSchedule* made) {
  AddMoment(command, {"--cron"}, made);
  AddCatchUp(command, made);
  args::Add(command, "--handler-version", &made->handler_version,
            "The version that its batches are bound to; without it, the job's then");
  args::Add(command, "--tenant", &made->tenant, "Whose batch it is");
  AddSla(command, "Promise each batch to be done within this time, such as 10m", &made->sla);
  AddLabels(command, "Find its batches by this, too, such as team=billing; repeatable",
            &made->labels);
}

void AddCreate(CLI::App* family, const Environment& environment) {
  const auto options = std::make_shared<ScheduleOptions>();
  NewSchedule* const made = &options->made;
  CLI::App* const create = AddServerVerb(
      family, {"create", "Submit a file as a batch of a job later, or again and again"}, options,
      Create, environment);
  args::Add(create, "NAME", &made->name, "1 to 48 of a-z, 0-9, _ and -").Required();
  args::Add(create, "--job", &made->job, "The job's name").Required();
  args::Add(create, "--input", &made->input, "The file with the transactions, 3 MiB at most")
      .Required();
  const args::Option cron = AddCron(create, made);
  args::Add(create, "--time-zone", &made->time_zone, "Of --cron, such as Europe/Berlin; else UTC")
      .Needs(cron);
  AddMore(create, made);
}

void AddUpdate(CLI::App* family, const Environment& environment) {
  const auto options = std::make_shared<UpdateOptions>();
  NewSchedule* const made = &options->changes.made;
  made->catch_up.clear();
  CLI::App* const update =
      AddServerVerb(family,
                    {"update",
                     "Change what is named of one; it goes on with its next occurrence, and what "
                     "came before is not made up for"},
                    options, Update, environment);
  args::Add(update, "NAME", &made->name, "Of the schedule").Required();
  args::Add(update, "--job", &made->job, "The job's name");
  AddCron(update, made);
  args::Add(update, "--time-zone", &made->time_zone, "Of --cron, such as Europe/Berlin");
  AddMore(update, made);
  args::Add(update, "--revision", &options->changes.revision,
            "Only if it is at this revision, as `get` shows it")
      .TypeName("N");
}

}  // namespace

void AddSchedule(CLI::App* app, const Environment& environment) {
  CLI::App* const family = args::AddSubcommand(
      app, "schedule",
      "Make, update, list, get, pause, resume, run and delete schedules of batches");
  args::RequireSubcommand(family);
  AddCreate(family, environment);
  AddUpdate(family, environment);
  const auto options = std::make_shared<ScheduleOptions>();
  AddServerVerb(family, {"list", "Show all, with what comes next and what is wrong", Csv::kYes},
                options, List, environment);
  const auto add_verb = [&](const char* name, const char* about, auto verb) {
    CLI::App* const command = AddServerVerb(family, {name, about}, options, verb, environment);
    args::Add(command, "NAME", &options->name, "Of the schedule").Required();
    return command;
  };
  add_verb("get", "Show all that is known of one", Get);
  add_verb("pause", "Have one submit nothing until it is resumed", Pause);
  add_verb("resume", "Have it go on; what it left out is not made up for", Resume);
  args::Add(add_verb("run", "Submit a batch of it now", RunNow), "--run-id", &options->run_id,
            "Names this run; the same id never makes a second batch");
  add_verb("delete", "Delete one; its batches stay", Delete);
}

}  // namespace muster::cli
