// SPDX-License-Identifier: Apache-2.0

// TargetPolicy: decides for one target. It runs the deadline policy with the options and limits of
// the target's rules, and records all inputs and decisions.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "muster/scaling/policy/deadline_policy.h"
#include "muster/scaling/policy/policy.h"
#include "muster/scaling/recording/recording.h"
#include "muster/scaling/rules/ruled_policy.h"
#include "muster/scaling/rules/rules.h"

namespace muster::scaling_agent {

// Rules, with the text of the file that they came from.
struct RulesInForce {
  std::shared_ptr<const scaling::rules::Rules> rules;
  std::string text;
  int64_t revision = 0;
};

// The options of the deadline policy that the rules of a target set.
//
//   sla.max, sla.aim, patience   theirs; without an sla kDefaultSla
//   stabilizer.idle_hold         where it is set, it replaces the hold that the policy computes
//   from
//                                the cost of a cold start
//   on_metric_loss               theirs
scaling::policy::DeadlineOptions OptionsOf(const scaling::rules::Rules& rules,
                                           const scaling::rules::Target& target);

struct RecordingPlace {
  std::string path;  // empty: nothing is recorded
  int64_t most_bytes =
      scaling::recording::kDefaultRecordingBytes;  // of a file; there are two at the most
};

// Not thread-safe.
class TargetPolicy {
 public:
  // Each Begin starts a new recording beside the existing ones: FILE, FILE.2, FILE.3 … up to
  // kMaxRecordings.
  TargetPolicy(std::string target, RecordingPlace place);

  // Starts deciding anew: only the rules carry over, and what the budget has spent. Begin and Use
  // fail if the rules lack the target or ask for options that the policy refuses; the previous
  // rules then stay in force.
  absl::Status Begin(const RulesInForce& rules);
  // Replaces the rules. The policy keeps what it has learned, unless the options of the deadline
  // policy change.
  absl::Status Use(const RulesInForce& rules);

  // While another agent decides: what the replicas cost, so that the budget's hour goes on with
  // this agent. Ends deciding until the next Begin.
  void Pay(absl::Time now, int replicas);

  // Announce and Decide require a Begin that succeeded.
  void Announce(const scaling::policy::Announcement& announcement);
  scaling::policy::Decision Decide(const scaling::policy::Observation& observation);

  const scaling::rules::RuleTrace& trace() const { return policy_->trace(); }
  // As of Policy, at the last decision.
  std::optional<double> forecast() const { return policy_->forecast(); }
  const scaling::policy::DeadlineOptions& options() const { return options_; }
  // OK: the recording is complete, or none is wanted. An error: the recording ended while deciding
  // goes on; the message tells why, and how many events since are missing.
  absl::Status recording() const;

 private:
  std::optional<scaling::policy::Spending> Spent() const;
  void BeginRecording();
  void Record(const scaling::recording::RecordedEvent& event);
  void EndRecording(const absl::Status& why);

  const std::string target_;
  const RecordingPlace place_;
  scaling::policy::DeadlineOptions options_;
  std::unique_ptr<scaling::rules::RuledPolicy> policy_;
  scaling::rules::BudgetAccount account_;  // while policy_ is null
  std::unique_ptr<scaling::recording::RecordingWriter> writer_;
  absl::Status recording_;
  int64_t unrecorded_ = 0;  // events since the recording ended
};

}  // namespace muster::scaling_agent
