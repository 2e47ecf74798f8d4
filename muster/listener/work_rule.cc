#include "muster/listener/work_rule.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "muster/base/status_macros.h"

namespace muster::listener {
namespace {

struct Step {
  int64_t min_depth;
  int tasks;
};

int TasksFor(const std::vector<Step>& steps, int64_t depth) {
  const auto above = std::upper_bound(steps.begin(), steps.end(), depth,
                                      [](int64_t d, const Step& s) { return d < s.min_depth; });
  return above == steps.begin() ? kFallbackTasks : std::prev(above)->tasks;
}

WorkRule RuleOf(std::vector<Step> steps) {
  return [steps = std::move(steps)](int64_t depth) { return TasksFor(steps, depth); };
}

absl::StatusOr<Step> ParseStep(absl::string_view text) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, ':');
  Step step;
  if (parts.size() != 2 || !absl::SimpleAtoi(parts[0], &step.min_depth) ||
      !absl::SimpleAtoi(parts[1], &step.tasks)) {
    return absl::InvalidArgumentError(
        absl::StrCat("work rule step '", text, "' is not min_depth:tasks"));
  }
  if (step.tasks < 1 || step.tasks > kMaxRuleTasks) {
    return absl::InvalidArgumentError(
        absl::StrCat("work rule step '", text, "': tasks must be 1 to ", kMaxRuleTasks));
  }
  return step;
}

}  // namespace

WorkRule DefaultWorkRule() { return RuleOf({{0, 10}, {100, 50}, {1000, 100}}); }

absl::StatusOr<WorkRule> ParseWorkRule(absl::string_view text) {
  std::vector<Step> steps;
  for (absl::string_view piece : absl::StrSplit(text, ',')) {
    MUSTER_ASSIGN_OR_RETURN(const Step step, ParseStep(absl::StripAsciiWhitespace(piece)));
    const bool ascending =
        steps.empty() ? step.min_depth == 0 : step.min_depth > steps.back().min_depth;
    if (!ascending) {
      return absl::InvalidArgumentError(
          absl::StrCat("work rule step '", piece, "': depths must start at 0 and ascend"));
    }
    steps.push_back(step);
    if (steps.size() > kMaxRuleSteps) {
      return absl::InvalidArgumentError(
          absl::StrCat("work rule has more than ", kMaxRuleSteps, " steps"));
    }
  }
  return RuleOf(std::move(steps));
}

}  // namespace muster::listener
