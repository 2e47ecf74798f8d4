// TargetPolicy: what decides for one target: the deadline policy as the target's rules set it, held
// to the rules; and the recording of all that it was told and decided.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "muster/scaling/policy/deadline_policy.h"
#include "muster/scaling/policy/policy.h"
#include "muster/scaling/recording/recording.h"
#include "muster/scaling/rules/ruled_policy.h"
#include "muster/scaling/rules/rules.h"

namespace muster::scaling_agent {

// The rules as a file says them.
struct RulesInForce {
  std::shared_ptr<const scaling::rules::Rules> rules;
  std::string text;
  int64_t revision = 0;
};

// What the rules of a target say of the deadline policy.
//
//   sla.max, sla.aim, patience   theirs; without an sla kDefaultSla
//   stabilizer.idle_hold         where it is said the rule alone holds,
//                                not the cost of a cold start
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
  // Each time that deciding begins anew a new recording begins beside those that are there: FILE,
  // FILE.2, FILE.3 … up to kMaxRecordings.
  TargetPolicy(std::string target, RecordingPlace place);

  // Knows nothing of what was before, save the rules. The errors of both: the rules do not have the
  // target, or ask for what the policy refuses; what was in force stays.
  absl::Status Begin(const RulesInForce& rules);
  // From now on. What was learned stays, unless the deadline policy itself is to be another.
  absl::Status Use(const RulesInForce& rules);

  // After Begin.
  void Announce(const scaling::policy::Announcement& announcement);
  scaling::policy::Decision Decide(const scaling::policy::Observation& observation);

  const scaling::rules::RuleTrace& trace() const { return policy_->trace(); }
  const scaling::policy::DeadlineOptions& options() const { return options_; }
  // OK: what shall be recorded is. Else it ended, and deciding goes on; why, and how much of what
  // happened since is not in it.
  absl::Status recording() const;

 private:
  void BeginRecording();
  void Record(const scaling::recording::RecordedEvent& event);
  void EndRecording(const absl::Status& why);

  const std::string target_;
  const RecordingPlace place_;
  scaling::policy::DeadlineOptions options_;
  std::unique_ptr<scaling::rules::RuledPolicy> policy_;
  std::unique_ptr<scaling::recording::RecordingWriter> writer_;
  absl::Status recording_;
  int64_t unrecorded_ = 0;  // events since it ended
};

}  // namespace muster::scaling_agent
