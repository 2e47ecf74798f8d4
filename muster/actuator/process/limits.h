// SPDX-License-Identifier: Apache-2.0

// The bounds of the process actuator, each with its reason.
#pragma once

#include <cstddef>

#include "absl/time/time.h"

namespace muster::actuator::process {

// Replicas of one target on one host. More processes do not help, and a mistake in the rules should
// not bring the host down.
inline constexpr int kMaxReplicas = 1000;

// Of the replicas whose program has changed, one in so many is replaced at a time, and at least
// one: as a Deployment of Kubernetes does, too.
inline constexpr int kReplacedShare = 4;

// An order holds the folder's lock until its programs have been executed. A longer wait means that
// the agent which holds the lock was stopped.
inline constexpr absl::Duration kLockLimit = absl::Seconds(10);
inline constexpr absl::Duration kLockRetry = absl::Milliseconds(5);

// A keeper writes one small file and executes one program before it answers.
inline constexpr absl::Duration kStartLimit = absl::Seconds(20);

// The keeper kills a replica that has not ended this long after its grace. A replica's own exit may
// take up to five seconds longer than the grace.
inline constexpr absl::Duration kKillSlack = absl::Seconds(10);

// How often a keeper checks whether an agent is present.
inline constexpr absl::Duration kKeeperTick = absl::Milliseconds(500);

// The longest wait between two starts of a program that ends by itself: long enough to spare the
// host, short enough for a person who has just repaired the program.
inline constexpr absl::Duration kMaxRestartWait = absl::Minutes(1);
// A replica that ran for this long was healthy: its end is the first failure of a new row.
inline constexpr absl::Duration kWellAfter = absl::Minutes(1);

// A replica's log is two files of this size at most.
inline constexpr size_t kMaxLogBytes = size_t{8} << 20;
inline constexpr size_t kMaxLogLineBytes = 1024;
inline constexpr size_t kLastLines = 3;
inline constexpr size_t kLastLineBytes = 200;
// Folders of replicas that failed, for people to look into.
inline constexpr size_t kKeptFailures = 20;

// Muster never writes larger files into the state folder.
inline constexpr size_t kMaxStateFileBytes = size_t{1} << 20;

}  // namespace muster::actuator::process
