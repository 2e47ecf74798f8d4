// SPDX-License-Identifier: Apache-2.0

// Replays a recorded run and compares the decisions.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/scaling/policy/policy.h"
#include "muster/scaling/recording/recording.h"

namespace muster::scaling::recording {

struct RecordingVerdict {
  struct Difference {
    std::string file;
    int64_t line = 0;
    absl::Time at;
    std::string recorded;  // decisions, as EncodeDecision writes them
    std::string replayed;
  };

  int64_t announcements = 0;
  int64_t decisions = 0;
  int64_t differences = 0;
  std::optional<Difference> first_difference;  // nullopt: there is none
  int first_part = 1;  // the first existing part; above 1 the recording's beginning is missing
};

// Stops at the first difference, unless the recording's beginning is missing: then the new policy
// may differ because it lacks that part, and the replay goes on.
//
// `policy` is new, with the options of the recording's header. `use_rules` receives the text of
// rules at the point where they came in force, `resume` what was spent before the first decision.
// Returns the errors of the reader and of `use_rules`.
absl::StatusOr<RecordingVerdict> ReplayRecording(
    RecordingReader* reader, scaling::policy::Policy* policy,
    const std::function<absl::Status(const std::string&)>& use_rules,
    const std::function<void(const scaling::policy::Spending&)>& resume);

}  // namespace muster::scaling::recording
