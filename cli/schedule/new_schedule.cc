// SPDX-License-Identifier: Apache-2.0
#include "cli/schedule/new_schedule.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "muster/args/command.h"
#include "muster/args/option.h"
#include "muster/base/fingerprint.h"
#include "muster/base/proto_time.h"
#include "muster/base/quantity.h"
#include "muster/base/status.h"
#include "muster/input/byte_source.h"
#include "muster/schedule/calendar.h"
#include "muster/schedule/limits.h"
#include "muster/v1/schedule_service.grpc.pb.h"

namespace muster::cli {
namespace {

const std::map<std::string, v1::CatchUp>& CatchUps() {
  static const std::map<std::string, v1::CatchUp> all = {
      {"none", v1::CATCH_UP_NONE}, {"once", v1::CATCH_UP_ONCE}, {"all", v1::CATCH_UP_ALL}};
  return all;
}

absl::StatusOr<std::string> ReadContent(const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(const auto source, input::FileSource::Open(path));
  if (source->size() > schedule::kMaxContentBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("input '", path, "' has ", source->size(), " bytes; a schedule takes at most ",
                     base::BytesToString(schedule::kMaxContentBytes)));
  }
  std::string content(source->size(), '\0');
  MUSTER_ASSIGN_OR_RETURN(const size_t got, source->Read(0, content.data(), content.size()));
  content.resize(got);
  return content;
}

// The moment of one that occurs once.
absl::StatusOr<absl::Time> MomentOf(const NewSchedule& from, base::Clock* clock) {
  if (!from.at.empty()) return schedule::ParseMoment(from.at);
  return absl::FromUnixMillis(absl::ToUnixMillis(clock->Now())) + *from.in;
}

absl::StatusOr<v1::ScheduleSpec> SpecOf(const NewSchedule& from, base::Clock* clock) {
  v1::ScheduleSpec spec;
  spec.set_name(from.name);
  spec.set_job(from.job);
  if (from.is_once()) {
    MUSTER_ASSIGN_OR_RETURN(const absl::Time at, MomentOf(from, clock));
    *spec.mutable_at() = base::ToProto(at);
  } else {
    spec.set_cron(from.cron);
    spec.set_time_zone(from.time_zone);
  }
  spec.set_catch_up(CatchUps().at(from.catch_up));
  if (!from.handler_version.empty()) spec.set_handler_version(from.handler_version);
  spec.set_tenant(from.tenant);
  if (from.sla.has_value()) *spec.mutable_sla() = base::ToProto(*from.sla);
  spec.mutable_labels()->insert(from.labels.begin(), from.labels.end());
  return spec;
}

bool NamesAChange(const NewSchedule& to) {
  return to.is_once() || to.sla.has_value() || !to.labels.empty() || !to.job.empty() ||
         !to.cron.empty() || !to.time_zone.empty() || !to.catch_up.empty() ||
         !to.handler_version.empty() || !to.tenant.empty();
}

absl::Status Change(const NewSchedule& to, base::Clock* clock, v1::ScheduleSpec* spec) {
  if (!to.job.empty()) spec->set_job(to.job);
  if (to.is_once()) {
    MUSTER_ASSIGN_OR_RETURN(const absl::Time at, MomentOf(to, clock));
    *spec->mutable_at() = base::ToProto(at);
    spec->clear_time_zone();
  }
  if (!to.cron.empty()) spec->set_cron(to.cron);
  if (!to.time_zone.empty()) spec->set_time_zone(to.time_zone);
  if (!to.catch_up.empty()) spec->set_catch_up(CatchUps().at(to.catch_up));
  if (!to.handler_version.empty()) spec->set_handler_version(to.handler_version);
  if (!to.tenant.empty()) spec->set_tenant(to.tenant);
  if (to.sla.has_value()) *spec->mutable_sla() = base::ToProto(*to.sla);
  if (!to.labels.empty()) {
    spec->clear_labels();
    spec->mutable_labels()->insert(to.labels.begin(), to.labels.end());
  }
  return absl::OkStatus();
}

// The service names fields of its API; here they are options, of which `given` has some. `content`
// is the user's word for what the batches consist of.
absl::Status InOptions(const absl::Status& refused, const NewSchedule& given,
                       absl::string_view content) {
  if (!absl::IsInvalidArgument(refused)) return refused;
  absl::string_view why = refused.message();
  if (absl::ConsumePrefix(&why, "content: ")) {
    return absl::InvalidArgumentError(absl::StrCat(content, ": ", why));
  }
  return absl::InvalidArgumentError(
      absl::StrReplaceAll(refused.message(), {{"spec.at", given.in.has_value() ? "--in" : "--at"},
                                              {"spec.catch_up", "--catch-up"},
                                              {"spec.cron", "--cron"},
                                              {"spec.job", "--job"},
                                              {"spec.labels", "--label"},
                                              {"spec.name", "NAME"},
                                              {"spec.time_zone", "--time-zone"}}));
}

// The same submission for the same time is the same schedule, so that the command can be repeated
// as it is.
std::string NameFor(const NewSchedule& from, const v1::CreateScheduleRequest& request) {
  const v1::ScheduleSpec& spec = request.spec();
  const auto pair = [](std::string* out, const auto& label) {
    absl::StrAppend(out, label.first, "=", label.second);
  };
  const std::string what =
      absl::StrJoin({spec.job(), absl::StrCat(spec.at().seconds(), ".", spec.at().nanos()),
                     from.catch_up, from.handler_version, from.tenant,
                     from.sla.has_value() ? absl::FormatDuration(*from.sla) : "",
                     absl::StrJoin(from.labels, ",", pair), request.content()},
                    "\n");
  return absl::StrCat("once-", base::Fingerprint(what).ToHex().substr(0, 16));
}

}  // namespace

void AddMoment(CLI::App* command, const std::vector<std::string>& without, NewSchedule* schedule) {
  // CLI11's own excludes() shows the names of several options in a random order.
  const auto require_alone = [command, without](const std::string& moment) {
    std::vector<std::string> others = without;
    others.emplace_back(moment == "--at" ? "--in" : "--at");
    for (const std::string& other : others) {
      if (args::Find(command, other).count() > 0) args::RefuseBoth(moment, other);
    }
  };
  args::AddFunction(
      command, "--at",
      [schedule, require_alone](const std::string& text) {
        require_alone("--at");
        schedule->at = text;
      },
      "Submit it then: 2026-12-01T03:00[Europe/Berlin] or 2026-12-01T03:00:00Z")
      .TypeName("TIME")
      .Check([](const std::string& text) {
        return std::string(schedule::ParseMoment(text).status().message());
      });
  args::AddFunction(
      command, "--in",
      [schedule, require_alone](const std::string& text) {
        require_alone("--in");
        const auto parsed = base::ParseDuration(text);
        if (parsed.ok()) schedule->in = *parsed;
      },
      "Submit it after this time, such as 2h")
      .TypeName("DURATION")
      .Check([](const std::string& text) {
        return std::string(base::ParseDuration(text).status().message());
      });
}

void AddCatchUp(CLI::App* command, NewSchedule* schedule) {
  args::Add(command, "--catch-up", &schedule->catch_up,
            "What is made up for when no initiator was there in time: none, once (the last "
            "occurrence) or all")
      .Check(args::IsMember({"none", "once", "all"}))
      .TypeName("RULE")
      .CaptureDefaultStr();
}

absl::StatusOr<v1::Schedule> CreateSchedule(const NewSchedule& schedule, const MeshClient& mesh,
                                            base::Clock* clock) {
  v1::CreateScheduleRequest request;
  MUSTER_ASSIGN_OR_RETURN(*request.mutable_content(), ReadContent(schedule.input));
  MUSTER_ASSIGN_OR_RETURN(*request.mutable_spec(), SpecOf(schedule, clock));
  if (schedule.name.empty()) {
    request.mutable_spec()->set_name(NameFor(schedule, request));
  }
  auto response = mesh.Call(&v1::ScheduleService::Stub::CreateSchedule, request);
  if (!response.ok()) return InOptions(response.status(), schedule, schedule.input);
  return std::move(*response->mutable_schedule());
}

absl::StatusOr<v1::Schedule> UpdateSchedule(const ScheduleChanges& changes, const MeshClient& mesh,
                                            base::Clock* clock) {
  if (!NamesAChange(changes.made)) {
    return absl::InvalidArgumentError(
        "no change is named, such as --cron or --label; see muster schedule update --help");
  }
  v1::GetScheduleRequest get;
  get.set_name(changes.made.name);
  MUSTER_ASSIGN_OR_RETURN(auto found, mesh.Call(&v1::ScheduleService::Stub::GetSchedule, get));
  v1::UpdateScheduleRequest request;
  *request.mutable_spec() = found.schedule().spec();
  MUSTER_RETURN_IF_ERROR(Change(changes.made, clock, request.mutable_spec()));
  request.set_expected_revision(changes.revision.value_or(found.schedule().revision()));
  auto response = mesh.Call(&v1::ScheduleService::Stub::UpdateSchedule, request);
  if (!response.ok()) {
    return InOptions(response.status(), changes.made, "the content that it was made with");
  }
  return std::move(*response->mutable_schedule());
}

}  // namespace muster::cli
