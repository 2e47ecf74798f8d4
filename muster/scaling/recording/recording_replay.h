// Decides a recorded run anew, and compares.
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
  std::optional<Difference> first_difference;  // nullopt: all are the same
  int first_part = 1;  // of the recording that there is; above 1 its beginning is missing
};

// Stops at the first difference, unless the recording's beginning is missing: then a policy that
// has not seen it may well decide otherwise, and goes on.
//
// `policy` is new, and made as the recording's header says. `use_rules` is called with the text of
// rules when they came in force. Errors: the reader's, and those of `use_rules`.
absl::StatusOr<RecordingVerdict> ReplayRecording(
    RecordingReader* reader, scaling::policy::Policy* policy,
    const std::function<absl::Status(const std::string&)>& use_rules);

}  // namespace muster::scaling::recording
