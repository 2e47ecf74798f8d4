// SPDX-License-Identifier: Apache-2.0

// Every bound of schedules, with its reason.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"

namespace muster::schedule {

// With an id of 8 bytes each, kMaxSchedules of these fit into one record of the sync store.
inline constexpr size_t kMaxNameBytes = 48;
inline constexpr size_t kMaxSchedules = 1000;
inline constexpr size_t kIdBytes = 8;

inline constexpr size_t kMaxCronBytes = 256;

// It travels in one message (rpc/limits.h).
inline constexpr size_t kMaxContentBytes = size_t{3} << 20;
// Longer content is a blob: a record is read at each occurrence.
inline constexpr size_t kMaxRecordedContentBytes = size_t{16} << 10;

// Labels that the user gives: a batch has one more, with the schedule's name.
inline constexpr size_t kMaxLabels = 15;
inline constexpr char kLabel[] = "schedule";

// An occurrence that is begun later than this was missed: no initiator was there. It covers a
// restart, and clocks that differ.
inline constexpr absl::Duration kOnTime = absl::Minutes(1);
// Occurrences that CATCH_UP_ALL makes up for at a time.
inline constexpr size_t kMaxCaughtUp = 1000;
// Older occurrences than this are neither made up for nor counted: a scan of a year takes less than
// a second.
inline constexpr absl::Duration kMaxLookBack = absl::Hours(24 * 366);

// While an initiator tries an occurrence, others leave it alone for so long. What happens if it
// takes longer is safe: they all use the same request id.
inline constexpr absl::Duration kTryTime = absl::Seconds(30);
// Between two tries of a refused occurrence, unless the refusal says when: from the least to the
// most, each wait is twice the one before.
inline constexpr absl::Duration kMinRetry = absl::Seconds(1);
inline constexpr absl::Duration kMaxRetry = absl::Minutes(1);
// No later occurrence ends the tries of a schedule with `at`.
inline constexpr absl::Duration kGiveUpAfter = absl::Hours(24);

// A schedule with `at` can be looked at for so long after it ended.
inline constexpr absl::Duration kKeepEnded = absl::Hours(24 * 7);
// An entry without its record belongs to a creation or a removal that died. Those that are under
// way take less.
inline constexpr absl::Duration kLeftoverAge = absl::Minutes(10);

// People change schedules, and an occurrence has few writers: a caller that loses so many races in
// a row gets an error.
inline constexpr int kMaxRaces = 20;

}  // namespace muster::schedule
