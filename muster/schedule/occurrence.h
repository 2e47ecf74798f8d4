// SPDX-License-Identifier: Apache-2.0

// Occurrence: which occurrence of a schedule a batch is of, and what keeps it from a second batch.
//
// The request id of an occurrence finds its batch as long as a ledger has the batch. After that,
// the schedule's record alone knows of it. So each initiator keeps two rules:
//
//   delete   Settle, then free the request id: release its claim, delete the batch
//   submit   find no batch, claim the request id, then Confirm, then begin the batch
//
// A submit that finds the request id free so finds the occurrence settled, too, however long it was
// under way, and also where the write that should have noted the first batch was lost.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/schedule/schedule_store.h"
#include "muster/v1/schedule_record.pb.h"

namespace muster::schedule {

struct Occurrence {
  v1::ScheduleEntry entry;
  absl::Time time;
};

// Whether a schedule made the batch, at an occurrence or by hand. Its request id stays its own when
// it is cancelled.
bool IsOfSchedule(absl::string_view request_id, const std::map<std::string, std::string>& labels);

// Whether the id is one that schedules give, of an occurrence or of a run by hand (RequestIdOf).
bool IsScheduleRequest(absl::string_view request_id);

// nullopt: the batch is of no occurrence; one of a run by hand is not.
std::optional<Occurrence> OccurrenceOf(absl::string_view request_id,
                                       const std::map<std::string, std::string>& labels);

// Notes that `batch` was submitted, where the record still has an attempt at the occurrence. Fine
// where the schedule is deleted, or its record cannot be read. Errors are the store's.
absl::Status Settle(ScheduleStore* store, const Occurrence& occurrence, uint64_t batch,
                    absl::Time now);

// OK: the record has an attempt at the occurrence. FailedPrecondition: it is settled, or its
// schedule is deleted or cannot be read. Other errors are the store's.
absl::Status Confirm(ScheduleStore* store, const Occurrence& occurrence);

}  // namespace muster::schedule
