#include "cli/scale/target_view.h"

#include "absl/strings/str_cat.h"
#include "cli/scale/decision_view.h"
#include "cli/scale/scale_view.h"
#include "cli/scale/time_view.h"
#include "muster/base/proto_time.h"

namespace muster::cli {
namespace {

using nlohmann::ordered_json;

std::string BindingCell(const v1::ScalingTarget& target, absl::Time now) {
  if (!target.has_override()) return OrDash(target.decision().binding());
  const absl::Time until = base::FromProto(target.override().until());
  return absl::StrCat("override to ", target.override().replicas(), ", ends ", FromNow(until, now));
}

ordered_json OverrideJson(const v1::ScalingTarget& target) {
  if (!target.has_override()) return {};
  const v1::ScalingOverride& held = target.override();
  return {{"replicas", held.replicas()},
          {"until", TimeJson(held.has_until(), held.until())},
          {"by", held.by()}};
}

}  // namespace

Table TargetColumns() {
  Table table;
  table.AddColumn("target");
  for (const char* column : {"have", "want", "starting", "standby"}) {
    table.AddColumn(column, Align::kRight);
  }
  table.AddColumn("oldest deadline");
  table.AddColumn("feasible");
  table.AddColumn("rate", Align::kRight);
  table.AddColumn("binding");
  table.AddColumn("trouble");
  return table;
}

std::vector<std::string> TargetRow(const v1::ScalingTarget& target, absl::Time now) {
  const bool decided = target.has_decision();
  return {
      target.target(),
      absl::StrCat(target.replicas().ready()),
      decided ? absl::StrCat(target.decision().replicas()) : "-",
      absl::StrCat(target.replicas().starting()),
      absl::StrCat(target.replicas().standby()),
      target.has_oldest_deadline() ? FromNow(base::FromProto(target.oldest_deadline()), now) : "-",
      decided ? FeasibleCell(target.decision()) : "-",
      RateCell(target.items_per_second()),
      BindingCell(target, now),
      OrDash(target.trouble())};
}

ordered_json TargetJson(const v1::ScalingTarget& target) {
  return {{"target", target.target()},
          {"queues", std::vector<std::string>(target.queues().begin(), target.queues().end())},
          {"sla_seconds", SecondsJson(target.has_sla(), target.sla())},
          {"replicas", CountsJson(target.replicas())},
          {"decision", target.has_decision() ? DecisionJson(target.decision()) : ordered_json()},
          {"override", OverrideJson(target)},
          {"items_per_second", target.items_per_second()},
          {"service_time_seconds", SecondsJson(target.has_service_time(), target.service_time())},
          {"cold_start_seconds", SecondsJson(target.has_cold_start(), target.cold_start())},
          {"ready", target.ready()},
          {"in_flight", target.in_flight()},
          {"oldest_deadline", TimeJson(target.has_oldest_deadline(), target.oldest_deadline())},
          {"trouble", target.trouble()}};
}

}  // namespace muster::cli
