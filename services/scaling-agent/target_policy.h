// TargetPolicy: what decides for one target: the deadline policy as the target's rules set it, held
// to the rules; and the recording of all that it was told and decided.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "muster/scaling/deadline_options.h"
#include "muster/scaling/decision.h"
#include "muster/scaling/observation.h"
#include "muster/scaling_rules/ruled_policy.h"
#include "muster/scaling_rules/rules.h"
#include "muster/scaling_sim/recording.h"

namespace muster::scaling_agent {

// The rules as a file says them.
struct RulesInForce {
  std::shared_ptr<const scaling_rules::Rules> rules;
  std::string text;
  int64_t revision = 0;
};

// What the rules of a target say of the deadline policy.
//
//   sla.max, sla.aim, patience   theirs; without an sla kDefaultSla
//   stabilizer.idle_hold         where it is said the rule alone holds,
//                                not the cost of a cold start
//   on_metric_loss               theirs
scaling::DeadlineOptions OptionsOf(const scaling_rules::Rules& rules,
                                   const scaling_rules::Target& target);

// Not thread-safe.
class TargetPolicy {
 public:
  // `record_path`: empty, or where the recording goes. Each time that deciding begins anew a new
  // one begins beside those that are there: FILE, FILE.2, FILE.3 …
  TargetPolicy(std::string target, std::string record_path);

  // Knows nothing of what was before, save the rules. The errors of both: the rules do not have the
  // target, or ask for what the policy refuses; what was in force stays.
  absl::Status Begin(const RulesInForce& rules);
  // From now on. What was learned stays, unless the deadline policy itself is to be another.
  absl::Status Use(const RulesInForce& rules);

  // After Begin.
  void Announce(const scaling::Announcement& announcement);
  scaling::Decision Decide(const scaling::Observation& observation);

  const scaling_rules::RuleTrace& trace() const { return policy_->trace(); }
  const scaling::DeadlineOptions& options() const { return options_; }
  // OK: what shall be recorded is.
  const absl::Status& recording() const { return recording_; }

 private:
  void BeginRecording();
  void Record(const scaling_sim::RecordedEvent& event);

  const std::string target_;
  const std::string record_path_;
  scaling::DeadlineOptions options_;
  std::unique_ptr<scaling_rules::RuledPolicy> policy_;
  std::unique_ptr<scaling_sim::RecordingWriter> writer_;
  absl::Status recording_;
};

}  // namespace muster::scaling_agent
