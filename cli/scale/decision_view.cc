#include "cli/scale/decision_view.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "cli/output/batch_view.h"
#include "cli/scale/scale_view.h"
#include "cli/scale/time_view.h"
#include "muster/base/proto_time.h"

namespace muster::cli {
namespace {

using nlohmann::ordered_json;

// STATE_NOTHING_TO_DO → "nothing to do".
std::string ActionName(v1::ScalingAction::State state) {
  const std::string name = v1::ScalingAction::State_Name(state);
  return absl::StrReplaceAll(absl::AsciiStrToLower(absl::StripPrefix(name, "STATE_")),
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

}  // namespace

std::string FeasibleCell(const v1::ScalingDecision& decision) {
  if (decision.feasible()) return "yes";
  const std::string late = decision.has_late_by()
                               ? absl::StrCat(DurationCell(decision.late_by()), " late")
                               : "never done";
  return decision.needs() > 0 ? absl::StrCat("no: ", late, ", needs ", decision.needs())
                              : absl::StrCat("no: ", late);
}

std::string ActionCell(const v1::ScalingDecision& decision) {
  return decision.has_action() ? ActionName(decision.action().state()) : "-";
}

Table DecisionColumns() {
  Table table;
  for (const char* column : {"decision", "target", "decided"}) table.AddColumn(column);
  for (const char* column : {"before", "replicas"}) table.AddColumn(column, Align::kRight);
  for (const char* column : {"binding", "feasible", "action", "explanation"}) {
    table.AddColumn(column);
  }
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

}  // namespace muster::cli
