// LeaderRecord: what the agents of a mesh know of the one that leads. A record of the sync store:
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
  std::string holder;   // an instance; empty: nobody leads
  std::string address;  // its HOST:PORT
  int64_t token = 0;    // grows with each change of the holder
  int64_t beat = 0;     // grows with each renewal, so that each differs
  absl::Duration duration;

  bool operator==(const LeaderRecord&) const = default;
};

std::string Encode(const LeaderRecord& record);
// DataLoss: it is none. FailedPrecondition: of a later version.
absl::StatusOr<LeaderRecord> DecodeLeaderRecord(absl::string_view text);

}  // namespace muster::scaling_agent
