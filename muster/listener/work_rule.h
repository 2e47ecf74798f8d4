// Work rules: how many dequeue tasks a depth deserves (req. 38). The host may replace the rule, or
// describe one as text that is managed outside the program.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster::listener {

// depth → number of dequeue tasks wanted, at least 1. A negative depth means "unknown".
// Thread-safe.
using WorkRule = std::function<int(int64_t depth)>;

// What a queue deserves when its depth is unknown.
inline constexpr int kFallbackTasks = 1;
inline constexpr int kMaxRuleSteps = 64;  // a rule longer than this is a mistake
inline constexpr int kMaxRuleTasks = 10000;

// < 100 → 10, 100–999 → 50, ≥ 1000 → 100; unknown → 1.
WorkRule DefaultWorkRule();

// Parses steps of "min_depth:tasks" with commas between, depths ascending from 0: the default rule
// is "0:10,100:50,1000:100". InvalidArgument names the step that is wrong.
absl::StatusOr<WorkRule> ParseWorkRule(absl::string_view text);

}  // namespace muster::listener
