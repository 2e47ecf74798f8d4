// SPDX-License-Identifier: Apache-2.0

// Plan: what is to be done for a schedule now: pure functions of its record, its calendar and the
// time, which the initiators (services/initiator/schedule) apply by compare-and-set.
//
//   ──┬─────────●──────●─────●───────────┼──────► occurrences
//     decided   └ missed ┘   │           now
//                            └ begun: record.attempt, until it is
//                                submitted   last, last_batch
//                                refused     and tried again after a while
//                                failed      because a later one is due
//
// An attempt is in the record before its batch is submitted, under a request id that is made of the
// schedule's id and the occurrence. So an initiator that dies in between leaves the attempt behind,
// and the next one that tries it comes to the same batch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/schedule/calendar.h"
#include "muster/v1/schedule_record.pb.h"

namespace muster::schedule {

// What is to be done.
struct Plan {
  // Submit this occurrence, once the record is written; nullopt: nothing is to be submitted.
  std::optional<absl::Time> occurrence;
  // The record was changed, and must be written before anything else is done.
  bool changed = false;
  // When to look again, if nothing is to be submitted; may be infinite.
  absl::Time look_again = absl::InfiniteFuture();
  // Occurrences that this plan gives up.
  int64_t missed = 0;
  int64_t failed = 0;
};

// Changes `record` to what it shall be, for the initiator `owner` (the id of its data directory).
Plan MakePlan(const Calendar& calendar, absl::Time now, absl::string_view owner,
              v1::ScheduleRecord* record);

bool HasAttempt(const v1::ScheduleRecord& record, absl::Time occurrence);

// Changes `record` to say what came of an attempt at `occurrence`. False: it has no such attempt
// any more, for another initiator has settled it.
bool NoteSubmitted(absl::Time occurrence, uint64_t batch, absl::Time now,
                   v1::ScheduleRecord* record);
// `why` is not OK. A refusal that says when to come again is heeded, within kMaxRetry.
bool NoteRefused(absl::Time occurrence, const absl::Status& why, absl::Time now,
                 v1::ScheduleRecord* record);

void Pause(v1::ScheduleRecord* record);
// What occurred until `now` is passed over, but for a try that a death cut off.
void Resume(absl::Time now, v1::ScheduleRecord* record);

// Gives it another spec: it goes on with that one's next occurrence, and what occurred until `now`
// is passed over. InvalidArgument, with the field: the time of one that occurs once is past.
// FailedPrecondition: it has ended. Unavailable: what became of a try is not known yet.
absl::Status Update(const v1::ScheduleSpec& spec, absl::Time now, v1::ScheduleRecord* record);

// "schedule:0123456789abcdef:2026-12-01T02:00:00Z".
std::string RequestIdOf(const v1::ScheduleRecord& record, absl::Time occurrence);
// Of a run by hand. No occurrence has the same.
std::string RequestIdOf(const v1::ScheduleRecord& record, absl::string_view run_id);

// The next occurrence of the schedule; nullopt: there is none, or it is paused.
std::optional<absl::Time> NextOf(const v1::ScheduleRecord& record, const Calendar& calendar,
                                 absl::Time now);

}  // namespace muster::schedule
