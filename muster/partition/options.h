// SPDX-License-Identifier: Apache-2.0

// The settings of a group of members, and their limits.
#pragma once

#include <compare>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace muster::partition {

// How fast a member takes what it lacks.
enum class Strategy {
  kGreedy,    // all of it within a cycle
  kBalanced,  // one partition a cycle: gentle where taking over is expensive
};

// How many partitions share a record. Their rows always fit into its 64 KiB: each takes at most 44
// bytes and may name three members that no other names, with a name of kMaxPageMemberBytes and 2
// more, so that is 256 × (44 + 3 × 66) = 61,952. A larger page means
// fewer requests, and is written by more members: by those that own some of it, once in an interval
// each.
inline constexpr int kPageRows = 256;

// All members of a group have the same settings, but for `member` and what is said to be of it
// alone.
struct MemberOptions {
  std::string group = "";  // [A-Za-z0-9._/-], at most kMaxGroupBytes
  // [A-Za-z0-9._-], at most MaxMemberBytes(partitions); no two live members share it.
  std::string member = "";
  int partitions = 1;  // numbered from 0
  Strategy strategy = Strategy::kGreedy;
  absl::Duration interval = absl::Seconds(10);  // between the starts of two cycles, on average
  // A partition whose record has not changed for so long has lost its owner.
  absl::Duration lease = absl::Seconds(40);
  // How long an owner that agreed to hand over may finish and checkpoint its work.
  absl::Duration grace = absl::Seconds(10);
  // Partitions to a record. Stored groups have kPageRows; models of a group have fewer, so that few
  // partitions make many pages. Members that differ in it own partitions twice.
  int page_rows = kPageRows;

  // Of `member` alone:

  // False: it claims in its first cycle already what is free. Members that start together then move
  // more, but one that is alone works at once.
  bool looks_first = true;
  // Members that are known to be dead, such as earlier processes of this one: what they own is this
  // member's at once. If one of them lives after all, only the epochs keep it from committing.
  std::vector<std::string> predecessors = {};  // at most kMaxPredecessors
  // Claims take this epoch or a higher one: what work commits to may remember epochs that the store
  // has lost.
  int64_t least_epoch = 1;

  std::strong_ordering operator<=>(const MemberOptions&) const = default;
  bool operator==(const MemberOptions&) const = default;
};

// A cycle reads every page of partitions, one after the other: 64 at most.
inline constexpr int kMaxPartitions = 16'384;
// The members of a group are listed in one record: 256 × (128 + 3) bytes fit into 64 KiB. One
// member more is not listed, and takes nothing until an entry is free.
inline constexpr int kMaxMembers = 256;
inline constexpr size_t kMaxMemberBytes = 128;
// Of a member of a group with more than kMaxLongNamePartitions, whose pages name so many. In
// smaller groups, 128 × (44 + 3 × 131) = 55,936 bytes fit, too.
inline constexpr size_t kMaxPageMemberBytes = 64;
inline constexpr int kMaxLongNamePartitions = 128;
inline constexpr size_t kMaxPredecessors = 16;
// Leaves room in a sync key for the member's name.
inline constexpr size_t kMaxGroupBytes = 80;

// A cycle starts after interval × U(0.8, 1.2), so that members do not stay in step.
inline constexpr double kShortestCycle = 0.8;
inline constexpr double kLongestCycle = 1.2;
// As part of the interval: the next cycle of a member that has just joined or awaits a hand-over.
inline constexpr double kSoonCycle = 0.25;

// How often a member reads the records of the partitions that it has asked for, and nothing else,
// as part of the interval: 50 ms of 10 s. So it begins soon after the owner has stopped.
inline constexpr double kHandOverLook = 0.005;

// The longest cycle fits so often into a lease: with an interval as long as the lease, members
// would take the partitions of owners that are merely about to renew.
inline constexpr int kCyclesPerLease = 3;

// How long the name of a member of a group with so many partitions may be.
size_t MaxMemberBytes(int partitions);

// InvalidArgument, naming the field, unless a member can run with `options`.
absl::Status Validate(const MemberOptions& options);

// What a holder uses of a lease or a grace that others wait out: 90 %, because clocks run at
// slightly different speeds.
absl::Duration OwnShare(absl::Duration duration);

}  // namespace muster::partition
