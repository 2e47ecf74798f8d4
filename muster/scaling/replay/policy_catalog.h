// SPDX-License-Identifier: Apache-2.0

// Finds policies by the names that `muster replay --policy` accepts.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/scaling/policy/deadline_policy.h"
#include "muster/scaling/policy/policy.h"
#include "muster/scaling/replay/options.h"

namespace muster::scaling::replay {

// A policy that can be created for each run.
struct PolicyEntry {
  std::string name;
  std::string settings;  // for people: "target=5, poll=30s"
  // Random phases are drawn from `seed`. Null for the oracle, which is not a policy (oracle.h).
  std::function<std::unique_ptr<scaling::policy::Policy>(uint64_t seed)> make;
};

// One name, or a family of them:
//   deadline              muster's own, with `deadline` as its options
//   keda[:TARGET[:PACE]]  KEDA and the autoscaler. TARGET: default (5 items per replica), mud,
//                         mud/2, mud/4 (of the μ·D items that a replica can do within the SLA), a
//                         number, or desired (not items, but the replicas that the deadline policy
//                         wants, as the scaling agent serves them). PACE: default, fast (poll 5 s,
//                         cool-down and stabilization 60 s, +900 % or 20 pods per 15 s), push (it
//                         hears of work at once), behavior (the autoscaler's own behavior block,
//                         +100 % or 4 pods per 15 s), or direct (push, neither cool-down nor
//                         stabilization, any number of pods per 15 s)
//   keda:sweep            all twelve of {default, mud, mud/2, mud/4} × {default, fast, push}
//   hpa[:TARGET[:PACE]]   the autoscaler alone
//   backlog[:ITEMS]       backlog per instance; μ·D items by default
//   fixed:N               N replicas
//   oracle                the least that any policy can pay
// InvalidArgument: the policy or setting is unknown.
absl::StatusOr<std::vector<PolicyEntry>> FindPolicies(
    absl::string_view name, const SimOptions& options,
    const scaling::policy::DeadlineOptions& deadline);

}  // namespace muster::scaling::replay
