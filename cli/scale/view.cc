// SPDX-License-Identifier: Apache-2.0
#include "cli/scale/view.h"

#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "cli/output/format.h"
#include "muster/base/proto_time.h"
#include "muster/scaling/policy/explain.h"

namespace muster::cli {

using nlohmann::ordered_json;

std::string FromNow(absl::Time time, absl::Time now) {
  const absl::Duration left = time - now;
  if (absl::AbsDuration(left) < absl::Milliseconds(50)) return "now";
  if (left > absl::ZeroDuration()) return absl::StrCat("in ", scaling::policy::ShowDuration(left));
  return absl::StrCat(scaling::policy::ShowDuration(-left), " ago");
}

std::string DurationCell(const google::protobuf::Duration& duration) {
  return scaling::policy::ShowDuration(base::FromProto(duration));
}

ordered_json SecondsJson(bool has, const google::protobuf::Duration& duration) {
  if (!has) return {};
  return absl::ToDoubleSeconds(base::FromProto(duration));
}

namespace {

// "40.0/s"; "not known".
std::string RateCell(double items_per_second) {
  return items_per_second > 0 ? absl::StrFormat("%.1f/s", items_per_second) : "not known";
}

ordered_json CountsJson(const v1::ReplicaCounts& counts) {
  return {{"ready", counts.ready()},
          {"starting", counts.starting()},
          {"draining", counts.draining()},
          {"standby", counts.standby()},
          {"tasks", counts.tasks()}};
}

// STATE_NOTHING_TO_DO → "nothing to do".
std::string ActionName(v1::ScalingAction::State state) {
  return absl::StrReplaceAll(EnumName(v1::ScalingAction::State_Name(state), "STATE_"),
                             {{"_", " "}});
}

ordered_json ActionJson(const v1::ScalingDecision& decision) {
  if (!decision.has_action()) return {};
  const v1::ScalingAction& action = decision.action();
  return {{"state", ActionName(action.state())},
          {"before", action.before()},
          {"after", action.after()},
          {"detail", action.detail()},
          {"answered", TimeJson(action.has_answered(), action.answered())}};
}

// "yes"; "no: 53 s late, needs 5".
std::string FeasibleCell(const v1::ScalingDecision& decision) {
  if (decision.feasible()) return "yes";
  const std::string late = decision.has_late_by()
                               ? absl::StrCat(DurationCell(decision.late_by()), " late")
                               : "never done";
  return decision.needs() > 0 ? absl::StrCat("no: ", late, ", needs ", decision.needs())
                              : absl::StrCat("no: ", late);
}

// The state of the decision's action: "nothing to do", "done"; "-": it has none.
std::string ActionCell(const v1::ScalingDecision& decision) {
  return decision.has_action() ? ActionName(decision.action().state()) : "-";
}

}  // namespace

Table DecisionColumns() {
  Table table;
  table.AddColumns({"decision", "target", "decided"});
  table.AddColumns({"before", "replicas"}, Align::kRight);
  table.AddColumns({"binding", "feasible", "action", "explanation"});
  return table;
}

std::vector<std::string> DecisionRow(const v1::ScalingDecision& decision) {
  return {decision.id(),
          decision.target(),
          Rfc3339(base::FromProto(decision.decided())),
          absl::StrCat(decision.replicas_before()),
          absl::StrCat(decision.replicas()),
          OrDash(decision.binding()),
          FeasibleCell(decision),
          ActionCell(decision),
          decision.explanation()};
}

ordered_json DecisionJson(const v1::ScalingDecision& decision) {
  return {{"decision", decision.id()},
          {"target", decision.target()},
          {"decided", TimeJson(decision.has_decided(), decision.decided())},
          {"replicas_before", decision.replicas_before()},
          {"replicas", decision.replicas()},
          {"tasks", decision.tasks()},
          {"standby", decision.standby()},
          {"binding", decision.binding()},
          {"wanted", decision.wanted()},
          {"feasible", decision.feasible()},
          {"needs", decision.needs()},
          {"late_by_seconds", SecondsJson(decision.has_late_by(), decision.late_by())},
          {"finish", TimeJson(decision.has_finish(), decision.finish())},
          {"deadline", TimeJson(decision.has_deadline(), decision.deadline())},
          {"explanation", decision.explanation()},
          {"action", ActionJson(decision)}};
}

std::string DecisionLine(const v1::ScalingDecision& decision) {
  return Printable(absl::StrCat(Rfc3339(base::FromProto(decision.decided())), "  ", decision.id(),
                                "  ", decision.replicas_before(), " to ", decision.replicas(), "  ",
                                ActionCell(decision), "  ", decision.explanation()));
}

namespace {

// What the agent calls it when no bound or rule changed what the work asks for.
constexpr char kNoBinding[] = "nothing";

std::string Percent(double share) { return absl::StrFormat("%.0f %%", 100 * share); }

void PrintInputs(const v1::ScalingInputs& inputs, const v1::ScalingDecision& decision,
                 std::ostream& out) {
  const v1::ReplicaCounts& replicas = inputs.replicas();
  out << "replicas: " << replicas.ready() << " ready, " << replicas.starting() << " starting, "
      << replicas.draining() << " draining, " << replicas.standby() << " standby; "
      << replicas.tasks() << " dequeue tasks each\n"
      << "bounds: " << inputs.min() << " to " << inputs.max();
  if (!inputs.range_by().empty()) out << " (" << Printable(inputs.range_by()) << ")";
  if (inputs.has_budget_cap()) out << "; the budget leaves " << inputs.budget_cap();
  out << "\nspeed: " << RateCell(inputs.items_per_second()) << " a replica, "
      << DurationCell(inputs.service_time()) << " an item, cold start "
      << DurationCell(inputs.cold_start()) << "\nload: cpu " << Percent(inputs.cpu_share())
      << ", throttled " << Percent(inputs.throttled_share()) << "\n";
  const absl::Time decided = base::FromProto(decision.decided());
  for (const v1::ScalingQueueReading& queue : inputs.queues()) {
    out << "queue " << Printable(queue.queue()) << ": "
        << Grouped(static_cast<uint64_t>(queue.ready())) << " ready, "
        << Grouped(static_cast<uint64_t>(queue.in_flight())) << " in flight, the oldest "
        << DurationCell(queue.oldest_age()) << " old; read "
        << FromNow(base::FromProto(queue.taken()), decided) << "\n";
  }
  if (inputs.queues().empty()) out << "queues: their statistics could not be had\n";
  if (!inputs.reaction().empty()) out << "reaction: " << Printable(inputs.reaction()) << "\n";
}

// What won is named last, also where nothing spoke against it.
std::string CandidatesCell(const v1::GetDecisionResponse& explained) {
  std::vector<std::string> weighed;
  for (const v1::ScalingCandidate& one : explained.candidates()) {
    const std::string by = one.by() == kNoBinding ? "chosen" : Printable(one.by());
    std::string shown = absl::StrCat(by, " ", one.replicas());
    if (weighed.empty() || weighed.back() != shown) weighed.push_back(std::move(shown));
  }
  return absl::StrJoin(weighed, ", ");
}

void PrintAction(const v1::ScalingDecision& decision, std::ostream& out) {
  if (!decision.has_action()) return;
  const v1::ScalingAction& action = decision.action();
  out << "action: " << ActionCell(decision);
  if (action.before() != action.after()) {
    out << ", from " << action.before() << " to " << action.after();
  }
  if (!action.detail().empty()) out << ": " << Printable(action.detail());
  if (action.has_answered()) {
    out << " (" << Rfc3339(base::FromProto(action.answered())) << ")";
  }
  out << "\n";
}

ordered_json InputsJson(const v1::ScalingInputs& inputs) {
  ordered_json queues = ordered_json::array();
  for (const v1::ScalingQueueReading& queue : inputs.queues()) {
    queues.push_back({{"queue", queue.queue()},
                      {"taken", TimeJson(queue.has_taken(), queue.taken())},
                      {"ready", queue.ready()},
                      {"in_flight", queue.in_flight()},
                      {"oldest_age_seconds", SecondsJson(true, queue.oldest_age())},
                      {"total_in", queue.total_in()},
                      {"total_out", queue.total_out()}});
  }
  return {
      {"min", inputs.min()},
      {"max", inputs.max()},
      {"range_by", inputs.range_by()},
      {"budget_cap", inputs.has_budget_cap() ? ordered_json(inputs.budget_cap()) : ordered_json()},
      {"reaction", inputs.reaction()},
      {"replicas", CountsJson(inputs.replicas())},
      {"items_per_second", inputs.items_per_second()},
      {"service_time_seconds", SecondsJson(true, inputs.service_time())},
      {"cold_start_seconds", SecondsJson(true, inputs.cold_start())},
      {"cpu_share", inputs.cpu_share()},
      {"throttled_share", inputs.throttled_share()},
      {"queues", std::move(queues)}};
}

}  // namespace

void PrintExplained(const v1::GetDecisionResponse& explained, std::ostream& out) {
  const v1::ScalingDecision& decision = explained.decision();
  out << "decision: " << Printable(decision.id()) << "\ntarget: " << Printable(decision.target())
      << "\ndecided: " << Rfc3339(base::FromProto(decision.decided())) << "\n"
      << Printable(decision.explanation()) << "\n\n";
  PrintInputs(explained.inputs(), decision, out);
  out << "weighed: " << CandidatesCell(explained)
      << "\nbinding: " << Printable(OrDash(decision.binding())) << "; the work alone asks for "
      << decision.wanted() << "\nfeasible: " << FeasibleCell(decision);
  if (decision.has_deadline()) {
    out << "; due " << Rfc3339(base::FromProto(decision.deadline()));
  }
  if (decision.has_finish()) {
    out << "; done " << Rfc3339(base::FromProto(decision.finish()));
  }
  out << "\n";
  PrintAction(decision, out);
}

ordered_json ExplainedJson(const v1::GetDecisionResponse& explained) {
  ordered_json json = DecisionJson(explained.decision());
  json["inputs"] = InputsJson(explained.inputs());
  json["candidates"] = ordered_json::array();
  for (const v1::ScalingCandidate& candidate : explained.candidates()) {
    json["candidates"].push_back({{"by", candidate.by()}, {"replicas", candidate.replicas()}});
  }
  return json;
}

namespace {

std::string BindingCell(const v1::ScalingTarget& target, absl::Time now) {
  if (!target.has_override()) return OrDash(target.decision().binding());
  const absl::Time until = base::FromProto(target.override().until());
  return absl::StrCat("override to ", target.override().replicas(), ", ends ", FromNow(until, now));
}

}  // namespace

ordered_json OverrideJson(const v1::ScalingOverride& held) {
  return {{"replicas", held.replicas()},
          {"until", TimeJson(held.has_until(), held.until())},
          {"by", held.by()}};
}

Table TargetColumns() {
  Table table;
  table.AddColumn("target");
  table.AddColumns({"have", "want", "starting", "standby"}, Align::kRight);
  table.AddColumns({"oldest deadline", "feasible"});
  table.AddColumn("rate", Align::kRight);
  table.AddColumns({"binding", "trouble"});
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
          {"override", target.has_override() ? OverrideJson(target.override()) : ordered_json()},
          {"items_per_second", target.items_per_second()},
          {"service_time_seconds", SecondsJson(target.has_service_time(), target.service_time())},
          {"cold_start_seconds", SecondsJson(target.has_cold_start(), target.cold_start())},
          {"ready", target.ready()},
          {"in_flight", target.in_flight()},
          {"oldest_deadline", TimeJson(target.has_oldest_deadline(), target.oldest_deadline())},
          {"trouble", target.trouble()}};
}

}  // namespace muster::cli
