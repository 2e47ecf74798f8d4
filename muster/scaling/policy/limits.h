// What bounds the memory and the numbers of scaling, with the reason of each.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"

namespace muster::scaling::policy {

// Cohorts of one target. A deadline is told apart from its neighbours to about a five-hundredth of
// the time that they span; twice that is looked at each second.
inline constexpr size_t kMaxCohorts = 512;

// Items of one reading, announcement or ledger: more is garbage. Sums of it fit 64 bits, and a
// double holds each exactly.
inline constexpr int64_t kMaxItems = int64_t{1} << 50;

// Replicas that a formula may ask for before bounds cut it: far above any, far below overflow.
inline constexpr int kMaxReplicas = 1'000'000;

// Work that nobody announced is not dated further back: it is late by any promise.
inline constexpr absl::Duration kOldestWork = absl::Hours(24 * 14);

// Ids of announcements that are remembered. A trigger that comes twice comes soon.
inline constexpr size_t kRememberedAnnouncements = 1024;

// How far back the work that was done since a reading is reckoned.
inline constexpr absl::Duration kEstimateHorizon = absl::Minutes(5);

}  // namespace muster::scaling::policy
