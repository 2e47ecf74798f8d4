// SPDX-License-Identifier: Apache-2.0
#include "cli/schedule/schedule_view.h"

#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "muster/base/proto_time.h"

namespace muster::cli {
namespace {

using nlohmann::ordered_json;

const char* StateOf(const v1::Schedule& schedule) {
  if (schedule.has_ended()) return "ended";
  return schedule.paused() ? "paused" : "active";
}

std::string BatchCell(uint64_t batch) { return batch == 0 ? "-" : absl::StrCat(batch); }

// Of an older client, a rule that it does not know is a number.
std::string CatchUpName(v1::CatchUp rule) {
  return rule == v1::CATCH_UP_UNSPECIFIED ? "once" : EnumName(v1::CatchUp_Name(rule), "CATCH_UP_");
}

}  // namespace

std::string WhenOf(const v1::Schedule& schedule) {
  const v1::ScheduleSpec& spec = schedule.spec();
  if (spec.has_at()) return "once";
  return absl::StrCat(spec.cron(), " ", spec.time_zone().empty() ? "UTC" : spec.time_zone());
}

ordered_json JsonOf(const v1::Schedule& schedule) {
  const v1::ScheduleSpec& spec = schedule.spec();
  ordered_json json = {{"schedule", spec.name()},
                       {"id", schedule.id()},
                       {"revision", schedule.revision()},
                       {"state", StateOf(schedule)},
                       {"job", spec.job()}};
  if (spec.has_at()) {
    json["at"] = TimeJson(true, spec.at());
  } else {
    json["cron"] = spec.cron();
    json["time_zone"] = spec.time_zone().empty() ? "UTC" : spec.time_zone();
  }
  json["catch_up"] = CatchUpName(spec.catch_up());
  if (spec.has_handler_version()) json["handler_version"] = spec.handler_version();
  if (!spec.tenant().empty()) json["tenant"] = spec.tenant();
  if (spec.has_sla()) json["sla_seconds"] = absl::ToDoubleSeconds(base::FromProto(spec.sla()));
  json["labels"] = std::map<std::string, std::string>(spec.labels().begin(), spec.labels().end());
  json["content_bytes"] = schedule.content_bytes();
  json["created"] = TimeJson(true, schedule.created());
  json["next"] = TimeJson(schedule.has_next(), schedule.next());
  json["last"] = TimeJson(schedule.has_last(), schedule.last());
  json["last_batch"] = nullptr;
  if (schedule.last_batch() != 0) json["last_batch"] = schedule.last_batch();
  json["retrying"] = TimeJson(schedule.has_retrying(), schedule.retrying());
  json["problem"] = schedule.problem();
  json["problem_since"] = TimeJson(schedule.has_problem_since(), schedule.problem_since());
  json["submitted"] = schedule.submitted();
  json["missed"] = schedule.missed();
  json["failed"] = schedule.failed();
  json["ended"] = TimeJson(schedule.has_ended(), schedule.ended());
  return json;
}

Table TableOf(const std::vector<v1::Schedule>& schedules) {
  Table table;
  table.AddColumns({"schedule", "job", "when", "state", "next", "last"});
  table.AddColumn("batch", Align::kRight);
  table.AddColumn("problem");
  for (const v1::Schedule& schedule : schedules) {
    table.AddRow({schedule.spec().name(), schedule.spec().job(), WhenOf(schedule),
                  StateOf(schedule), TimeCell(schedule.has_next(), schedule.next()),
                  TimeCell(schedule.has_last(), schedule.last()), BatchCell(schedule.last_batch()),
                  OrDash(schedule.problem())});
  }
  return table;
}

}  // namespace muster::cli
