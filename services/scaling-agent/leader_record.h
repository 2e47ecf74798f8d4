// SPDX-License-Identifier: Apache-2.0

// LeaderRecord: the record in the sync store that names the leading agent of a mesh:
//
//   {"version":1,"holder":"agent-7f3a","address":"10.0.0.7:7703","token":4,"beat":17,
//    "duration_ms":3000}
//
// To change it: keep reading what has been written; add members with a default that means what
// their absence did; raise kLeaderRecordVersion where an old reader would go wrong.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace muster::scaling_agent {

inline constexpr int kLeaderRecordVersion = 1;

struct LeaderRecord {
  std::string holder;   // an instance; empty: no agent leads
  std::string address;  // its HOST:PORT
  int64_t token = 0;    // grows with each change of the holder
  int64_t beat = 0;     // grows with each renewal, so that each differs
  absl::Duration duration;

  bool operator==(const LeaderRecord&) const = default;
};

std::string Encode(const LeaderRecord& record);
// DataLoss: `text` is not a leader record. FailedPrecondition: its version is later than this
// code's.
absl::StatusOr<LeaderRecord> DecodeLeaderRecord(absl::string_view text);

}  // namespace muster::scaling_agent
