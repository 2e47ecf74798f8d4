// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/policy/explain.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace muster::scaling::policy {
namespace {

std::string Count(int count, std::string_view noun) {
  return absl::StrCat(count, " ", absl::string_view(noun.data(), noun.size()),
                      count == 1 ? "" : "s");
}

std::string TimeOfDay(absl::Time time, absl::TimeZone zone) {
  const bool whole_minute = absl::ToUnixSeconds(time) % 60 == 0;
  return absl::FormatTime(whole_minute ? "%H:%M" : "%H:%M:%S", time, zone);
}

std::string What(const Decision& decision, const Fleet& fleet) {
  const int before = fleet.committed();
  std::string what = decision.replicas > before   ? absl::StrCat("Grow from ", before, " to ")
                     : decision.replicas < before ? absl::StrCat("Shrink from ", before, " to ")
                                                  : std::string("Keep ");
  absl::StrAppend(&what, Count(decision.replicas, "replica"));
  if (decision.tasks != fleet.tasks) {
    absl::StrAppend(&what, ", with ", Count(decision.tasks, "dequeue task"), " each instead of ",
                    fleet.tasks);
  }
  if (decision.standby > 0) absl::StrAppend(&what, ", and ", decision.standby, " on standby");
  return what + ".";
}

std::string ByDeadline(const Decision& decision, absl::TimeZone zone) {
  if (!decision.deadline.has_value()) return "";
  return absl::StrCat(" by ", TimeOfDay(*decision.deadline, zone));
}

std::string Miss(const Decision& decision, absl::TimeZone zone) {
  const absl::Duration late_by = decision.feasibility.late_by;
  if (decision.feasibility.feasible || late_by <= absl::ZeroDuration()) return "";
  const std::string which =
      decision.deadline.has_value() ? TimeOfDay(*decision.deadline, zone) : "its deadline";
  return absl::StrCat(": misses ", which, late_by == absl::InfiniteDuration() ? " " : " by ",
                      ShowDuration(late_by));
}

std::string Needs(const Decision& decision) {
  const int needs = decision.feasibility.feasible || decision.feasibility.needs == 0
                        ? decision.wanted
                        : decision.feasibility.needs;
  return absl::StrCat("Needs ", needs);
}

std::string Why(const Decision& decision, const Observation& observation, absl::TimeZone zone) {
  switch (decision.binding) {
    case Binding::kNothing:
      if (!decision.feasibility.feasible) {
        return absl::StrCat("What there is stays", Miss(decision, zone), ".");
      }
      return "What there is fits.";
    case Binding::kDeadline:
      return absl::StrCat("The queued work needs ", decision.wanted, ByDeadline(decision, zone),
                          ".");
    case Binding::kLateStart:
      return absl::StrCat("One more cannot wait any longer: started later, it could not help",
                          ByDeadline(decision, zone), ".");
    case Binding::kRate:
      return absl::StrCat("Work of this rate needs ", decision.wanted,
                          ": the SLA leaves no time to wait for a free one.");
    case Binding::kMin:
      return absl::StrCat("The work needs ", decision.wanted, "; the rules ask for at least ",
                          observation.bounds.min, ".");
    case Binding::kMax:
      return absl::StrCat(Needs(decision), ", capped at ", observation.bounds.max,
                          Miss(decision, zone), ".");
    case Binding::kHold:
      return "Idle ones stay for as long as it pays not to start them again.";
    case Binding::kForecast:
      return "Idle ones stay for what usually comes at this hour.";
    case Binding::kIdle:
      return "Those that go have been idle for longer than it pays to keep them.";
    case Binding::kThreads:
      return "There is processor time left for more tasks.";
    case Binding::kThrottled:
      return absl::StrCat(Needs(decision), ", but the queue throttles ",
                          absl::StrFormat("%.1f", 100 * observation.estimates.throttled_share),
                          " % of the calls", Miss(decision, zone), ". More partitions would help.");
    case Binding::kNoMetrics:
      return "The queues' statistics are not available: no replica is let go.";
    case Binding::kReaction:
      return "A rule asks for it.";
    case Binding::kStabilizer:
      return "A rule asks to wait after the last change.";
    case Binding::kOverride:
      return "It was set by hand.";
    case Binding::kPolicy:
      return "The policy asks for it.";
  }
  return "";
}

}  // namespace

std::string ShowDuration(absl::Duration duration) {
  if (duration == absl::InfiniteDuration()) return "for ever";
  const double exact = absl::ToDoubleSeconds(duration);
  if (exact > 0 && exact < 0.1) {
    const int64_t ms = std::llround(1000 * exact);
    return ms > 0 ? absl::StrCat(ms, " ms") : "under 1 ms";
  }
  if (exact < 10 && exact != std::floor(exact)) return absl::StrFormat("%.1f s", exact);
  const auto seconds = static_cast<int64_t>(std::llround(exact));
  if (seconds < 120) return absl::StrCat(seconds, " s");
  const int64_t minutes = seconds / 60;
  if (minutes >= 120) {
    return absl::StrCat(minutes / 60, " h",
                        minutes % 60 == 0 ? "" : absl::StrCat(" ", minutes % 60, " min"));
  }
  return absl::StrCat(minutes, " min",
                      seconds % 60 == 0 ? "" : absl::StrCat(" ", seconds % 60, " s"));
}

std::string ExplainInfeasible(const Decision& decision, const Bounds& bounds) {
  const Feasibility& feasibility = decision.feasibility;
  if (feasibility.feasible) return "";
  const std::string needs =
      feasibility.needs > 0
          ? absl::StrCat("needs N = ", feasibility.needs, ", N_max = ", bounds.max)
          : std::string("no number of replicas would do it");
  const std::string end =
      feasibility.late_by == absl::InfiniteDuration()
          ? std::string("it never ends")
          : absl::StrCat("earliest finish ", ShowDuration(feasibility.late_by), " late");
  return absl::StrCat("SLA infeasible: ", needs, "; ", end);
}

std::string Explain(const Decision& decision, const Observation& observation, absl::TimeZone zone) {
  std::string text =
      absl::StrCat(What(decision, observation.fleet), " ", Why(decision, observation, zone));
  const std::string infeasible = ExplainInfeasible(decision, observation.bounds);
  if (!infeasible.empty()) absl::StrAppend(&text, " ", infeasible, ".");
  return text;
}

}  // namespace muster::scaling::policy
