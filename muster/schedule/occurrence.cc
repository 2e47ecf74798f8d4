// SPDX-License-Identifier: Apache-2.0
#include "muster/schedule/occurrence.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "muster/base/status.h"
#include "muster/base/text.h"
#include "muster/schedule/limits.h"
#include "muster/schedule/plan.h"

namespace muster::schedule {
namespace {

constexpr absl::string_view kPrefix = "schedule:";

}  // namespace

bool IsOfSchedule(absl::string_view request_id, const std::map<std::string, std::string>& labels) {
  return absl::StartsWith(request_id, kPrefix) && labels.contains(kLabel);
}

bool IsScheduleRequest(absl::string_view request_id) {
  constexpr size_t kHexBytes = 2 * kIdBytes;
  if (!absl::ConsumePrefix(&request_id, kPrefix)) return false;
  if (request_id.size() <= kHexBytes || request_id[kHexBytes] != ':') return false;
  const absl::string_view id = request_id.substr(0, kHexBytes);
  return std::all_of(id.begin(), id.end(),
                     [](char c) { return absl::ascii_isxdigit(static_cast<unsigned char>(c)); });
}

// As RequestIdOf writes it.
std::optional<Occurrence> OccurrenceOf(absl::string_view request_id,
                                       const std::map<std::string, std::string>& labels) {
  if (!IsOfSchedule(request_id, labels)) return std::nullopt;
  const absl::string_view rest = absl::StripPrefix(request_id, kPrefix);
  constexpr size_t kHexBytes = 2 * kIdBytes;
  if (rest.size() <= kHexBytes || rest[kHexBytes] != ':') return std::nullopt;
  Occurrence occurrence;
  occurrence.entry.set_name(labels.at(kLabel));
  occurrence.entry.set_id(base::BytesFromHex(rest.substr(0, kHexBytes)));
  std::string error;
  const bool is_time =
      absl::ParseTime("%Y-%m-%dT%H:%M:%E*SZ", rest.substr(kHexBytes + 1), &occurrence.time, &error);
  return is_time ? std::optional<Occurrence>(occurrence) : std::nullopt;
}

absl::Status Settle(ScheduleStore* store, const Occurrence& occurrence, uint64_t batch,
                    absl::Time now) {
  const absl::Status settled =
      store
          ->Change(occurrence.entry,
                   [&](v1::ScheduleRecord* record) {
                     return NoteSubmitted(occurrence.time, batch, now, record);
                   })
          .status();
  // Nothing is submitted by a record that is gone, or cannot be read.
  const bool is_needless = absl::IsNotFound(settled) || absl::IsDataLoss(settled);
  return is_needless ? absl::OkStatus() : settled;
}

absl::Status Confirm(ScheduleStore* store, const Occurrence& occurrence) {
  const absl::StatusOr<StoredSchedule> stored = store->Read(occurrence.entry);
  if (absl::IsNotFound(stored.status()) || absl::IsDataLoss(stored.status())) {
    return absl::FailedPreconditionError(stored.status().message());
  }
  MUSTER_RETURN_IF_ERROR(stored.status());
  if (HasAttempt(stored->record, occurrence.time)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("schedule ", occurrence.entry.name(), " has settled its occurrence of ",
                   absl::FormatTime("%Y-%m-%dT%H:%M:%E*SZ", occurrence.time, absl::UTCTimeZone())));
}

}  // namespace muster::schedule
