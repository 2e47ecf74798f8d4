// The bounds of a host, with their reasons.
#pragma once

#include <cstddef>

#include "absl/time/time.h"

namespace muster::host {

// Between two tries to open a store that does not answer, at the most: soon enough for people who
// have just started the server, seldom enough for a herd.
inline constexpr absl::Duration kMaxOpenWait = absl::Seconds(10);

// What lies between the end of the grace and the end of the process: what stops then is told to
// stop, and has to do so.
inline constexpr absl::Duration kExitSlack = absl::Seconds(5);

inline constexpr absl::Duration kMaxDrainGrace = absl::Hours(24);
inline constexpr absl::Duration kMinLease = absl::Seconds(1);
inline constexpr absl::Duration kMaxLease = absl::Hours(12);
inline constexpr int kMaxReplicas = 5;  // as JetStream's

// An instance's name is part of subjects and log lines.
inline constexpr size_t kMaxInstanceBytes = 128;

}  // namespace muster::host
