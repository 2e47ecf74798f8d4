// SPDX-License-Identifier: Apache-2.0

// What tests of RuledPolicy share: a target with rules, and an inner policy that decides what the
// test sets.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "muster/scaling/rules/ruled_policy.h"
#include "muster/scaling/rules/rules_file.h"

namespace muster::scaling::rules {

using scaling::policy::Announcement;
using scaling::policy::Binding;
using scaling::policy::Decision;
using scaling::policy::Observation;
using scaling::policy::QueueReading;

// Decides what the test sets, and keeps the observations that it received.
class ScriptedPolicy final : public scaling::policy::Policy {
 public:
  void Announce(const Announcement& announcement) override { announced += announcement.items; }
  Decision Decide(const Observation& observation) override {
    seen = observation;
    return next;
  }

  Decision next;
  Observation seen;
  int64_t announced = 0;
};

inline std::shared_ptr<const Rules> RulesOf(const std::string& more,
                                            const std::string& target = "t") {
  auto rules = ParseRules(
      absl::StrCat("targets: {", target,
                   ": {kind: process, name: p, queues: [q], sla: {max: 100s}, max: 50}}\n",
                   "operands:\n"
                   "  depth: {queue: q, metric: depth, agg: last}\n"
                   "  cpu: {target: ",
                   target, ", metric: cpu, agg: last}\n", more),
      "rules.yaml");
  EXPECT_TRUE(rules.ok()) << rules.status();
  return std::make_shared<const Rules>(rules.ok() ? *std::move(rules) : Rules());
}

inline std::string When(int rank, const std::string& condition, const std::string& action) {
  return absl::StrCat("- {rank: ", rank, ", target: t, if: \"", condition, "\", do: {", action,
                      "}}\n");
}

// A target under rules. The replicas that were asked for are ready at once, unless the test says
// otherwise.
class RuledPolicyTest : public ::testing::Test {
 protected:
  void Rule(const std::string& rules) {
    auto inner = std::make_unique<ScriptedPolicy>();
    inner_ = inner.get();
    auto policy = RuledPolicy::Make(RulesOf(rules), "t", std::move(inner));
    ASSERT_TRUE(policy.ok()) << policy.status();
    policy_ = *std::move(policy);
    now_ = absl::FromCivil(absl::CivilSecond(2026, 11, 20, 7, 0, 0), absl::UTCTimeZone());
    Measure(0);
  }

  // A new reading, a moment later.
  void Measure(int64_t depth, double cpu_share = 0.5) {
    now_ += absl::Milliseconds(1);
    QueueReading reading;
    reading.queue = "q";
    reading.ready = depth;
    seen_.queues = {reading};
    seen_.estimates.cpu_share = cpu_share;
  }

  // The inner policy wants `wants` replicas, of which the work needs `work`.
  Decision Decide(int wants, int work = 0) {
    inner_->next.replicas = wants;
    inner_->next.wanted = work;
    inner_->next.binding = Binding::kDeadline;
    seen_.now = now_;
    for (QueueReading& reading : seen_.queues) reading.at = now_;
    return policy_->Decide(seen_);
  }

  // Decides, and carries the decision out.
  int Run(int wants, int work = 0) {
    seen_.fleet.ready = Decide(wants, work).replicas;
    return seen_.fleet.ready;
  }

  void Pass(absl::Duration time) { now_ += time; }

  ScriptedPolicy* inner_ = nullptr;  // owned by policy_
  std::unique_ptr<RuledPolicy> policy_;
  Observation seen_;
  absl::Time now_;
};

}  // namespace muster::scaling::rules
