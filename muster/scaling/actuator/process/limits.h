// The bounds of the process actuator, each with its reason.
#pragma once

#include <cstddef>

#include "absl/time/time.h"

namespace muster::scaling::actuator::process {

// Of one target on one host. More processes than this help nobody, and a slip in the rules should
// not bring the host down.
inline constexpr int kMaxReplicas = 1000;

// An order holds the folder's lock for as long as its programs take to be executed. Who waits
// longer than this waits for an agent that was stopped.
inline constexpr absl::Duration kLockLimit = absl::Seconds(10);
inline constexpr absl::Duration kLockRetry = absl::Milliseconds(5);

// A keeper writes one small file and executes one program before it answers.
inline constexpr absl::Duration kStartLimit = absl::Seconds(20);

// A replica that does not end is killed so long after its grace: its own exit may take as long as
// five seconds longer than the grace.
inline constexpr absl::Duration kKillSlack = absl::Seconds(10);

// How often a keeper looks whether an agent is there.
inline constexpr absl::Duration kKeeperTick = absl::Milliseconds(500);

// Between two starts of a program that ends by itself: long enough to leave the host alone, short
// enough for whoever has just repaired it.
inline constexpr absl::Duration kMaxRestartWait = absl::Minutes(1);
// Who ran for so long was well: its end is the first failure of a new row.
inline constexpr absl::Duration kWellAfter = absl::Minutes(1);

// A replica's log is two files of this size at most.
inline constexpr size_t kMaxLogBytes = size_t{8} << 20;
inline constexpr size_t kMaxLogLineBytes = 1024;
inline constexpr size_t kLastLines = 3;
inline constexpr size_t kLastLineBytes = 200;
// Folders of replicas that failed, for people to look into.
inline constexpr size_t kKeptFailures = 20;

// Larger files of the state folder were not written by muster.
inline constexpr size_t kMaxStateFileBytes = size_t{1} << 20;

}  // namespace muster::scaling::actuator::process
