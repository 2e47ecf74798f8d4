// SPDX-License-Identifier: Apache-2.0

// Every bound of the rules, with its reason.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"

namespace muster::scaling::rules {

// A person writes a rules file, and the agent reads it again whenever it changes.
inline constexpr size_t kMaxRulesFileBytes = size_t{1} << 20;
inline constexpr size_t kMaxTargets = 100;
inline constexpr size_t kMaxQueues = 64;
inline constexpr size_t kMaxConstraints = 1000;
inline constexpr size_t kMaxOperands = 200;
inline constexpr size_t kMaxReactions = 500;
inline constexpr int64_t kMaxRank = 1'000'000;
inline constexpr int64_t kMaxReplicas = 100'000;
// The maximum of a target whose rules state none: a mistake in a rule then costs little.
inline constexpr int kDefaultMaxReplicas = 20;
inline constexpr int64_t kMaxBudget = 60 * kMaxReplicas;  // replica-minutes in an hour
// The rest of a budget is spread over this time, so that the fleet shrinks gradually.
inline constexpr absl::Duration kBudgetHorizon = absl::Minutes(5);
inline constexpr absl::Duration kMinSla = absl::Milliseconds(1);
inline constexpr absl::Duration kMaxSla = absl::Hours(24 * 365);

// A condition is one line that a person understands. The length bounds the work of parsing and
// evaluating it, the depth bounds their recursion.
inline constexpr size_t kMaxConditionBytes = 1000;
inline constexpr int kMaxConditionDepth = 32;

// Windows are looked up each second, and minutes are the grain of a calendar.
inline constexpr absl::Duration kMinWindow = absl::Minutes(1);
inline constexpr absl::Duration kMaxWindow = absl::Hours(24 * 31);
inline constexpr absl::Duration kMaxPrewarm = absl::Hours(1);
inline constexpr size_t kMaxDays = 366;  // entries of one list
// 29 February comes after eight years at the latest (1896 to 1904, 2096 to 2104).
inline constexpr int kMaxDaysAhead = 366 * 8 + 31;
// A chain of more windows than this without a gap counts as endless.
inline constexpr int kMaxChainedWindows = 2000;

inline constexpr absl::Duration kMinOver = absl::Seconds(1);
inline constexpr absl::Duration kMaxOver = absl::Hours(24);
// A measurement older than this says nothing about the present.
inline constexpr absl::Duration kStaleAfter = absl::Minutes(1);
// The buckets of a metric's window: each holds all samples of 1/64 of the window.
inline constexpr int kMetricBuckets = 64;

// While its condition stays true, a `scale` reaction acts again after this time at the earliest:
// its previous step needs time to show in the metrics.
inline constexpr absl::Duration kMinReactionPause = absl::Seconds(15);
inline constexpr int64_t kMaxScalePercent = 1000;
inline constexpr absl::Duration kMaxCooldown = absl::Hours(24);
inline constexpr int64_t kMaxLosses = 3600;
// One lost reading counts at most in this period, however often the policy decides.
inline constexpr absl::Duration kReadingPeriod = absl::Seconds(1);

}  // namespace muster::scaling::rules
