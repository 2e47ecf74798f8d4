#include "cli/scale/explained_view.h"

#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/output/batch_view.h"
#include "cli/scale/decision_view.h"
#include "cli/scale/scale_view.h"
#include "cli/scale/time_view.h"
#include "muster/base/proto_time.h"

namespace muster::cli {
namespace {

using nlohmann::ordered_json;

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

}  // namespace muster::cli
