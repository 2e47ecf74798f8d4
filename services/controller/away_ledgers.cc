// SPDX-License-Identifier: Apache-2.0
#include "services/controller/away_ledgers.h"

#include <algorithm>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/quantity.h"
#include "muster/base/status.h"
#include "muster/ledger/batch_ledger.h"

namespace muster::controller {
namespace {

// A ledger that did not answer is not asked for so long; the pause doubles with each failure.
constexpr absl::Duration kMinAwayPause = absl::Milliseconds(250);
constexpr absl::Duration kMaxAwayPause = absl::Seconds(30);
// Of a batch that is not registered yet; it doubles, too.
constexpr absl::Duration kMinUnregisteredPause = absl::Milliseconds(4);
constexpr char kNotRegisteredYet[] = "muster.controller/not_registered_yet";

}  // namespace

absl::Status NotRegisteredYet(uint64_t batch) {
  absl::Status status =
      absl::UnavailableError(absl::StrCat("the report does not know batch ", batch, " yet"));
  status.SetPayload(kNotRegisteredYet, absl::Cord());
  return status;
}

absl::Status AwayLedgers::MayAsk(uint64_t batch) const {
  const Away* const away = away_.Peek(batch);
  if (away == nullptr || away->there) return absl::OkStatus();
  if (clock_->Monotonic() >= away->until) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(CheckGrace(batch, *away));
  return absl::UnavailableError("its ledger does not answer");
}

absl::Status AwayLedgers::NoteAway(uint64_t batch, const absl::Status& why) {
  const absl::Duration now = clock_->Monotonic();
  const auto [entry, is_new] = away_.FindOrAdd(batch);
  Away& away = *entry;
  const bool goes_away = is_new || std::exchange(away.there, false);
  const bool is_new_batch = why.GetPayload(kNotRegisteredYet).has_value();
  const absl::Duration first = is_new_batch ? kMinUnregisteredPause : kMinAwayPause;
  away.pause = goes_away ? first : std::clamp(away.pause * 2, first, kMaxAwayPause);
  away.usual = is_new_batch && away.pause < kMinAwayPause;
  away.until = now + away.pause;
  if (!ledger::IsUnknownToAll(why)) {
    away.unknown_since.reset();
  } else if (!away.unknown_since.has_value()) {
    away.unknown_since = now;
  }
  MUSTER_RETURN_IF_ERROR(CheckGrace(batch, away));
  return why;
}

void AwayLedgers::NoteThere(uint64_t batch) {
  Away* const away = away_.Find(batch);
  if (away == nullptr) return;
  away->there = true;
  away->unknown_since.reset();
}

absl::Status AwayLedgers::CheckGrace(uint64_t batch, const Away& away) const {
  if (!away.unknown_since.has_value()) return absl::OkStatus();
  if (clock_->Monotonic() - *away.unknown_since < unknown_grace_) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("no initiator has had the ledger of batch ", batch,
                                                 " for ", base::DurationToString(unknown_grace_)));
}

bool AwayLedgers::IsUsual(uint64_t batch) const {
  const Away* const away = away_.Peek(batch);
  return away != nullptr && away->usual;
}

bool AwayLedgers::IsUnknownToAll(uint64_t batch) const {
  const Away* const away = away_.Peek(batch);
  return away != nullptr && away->unknown_since.has_value();
}

absl::Duration AwayLedgers::PauseOf(uint64_t batch) const {
  const Away* const away = away_.Peek(batch);
  MUSTER_CHECK(away != nullptr, "batch ", batch, " is not away");
  return away->pause;
}

// A result that comes during the pause is put back for a whole one. So when the ledger answers,
// some may come again as much later, without a trigger: one look more than that finds them all.
absl::Duration AwayLedgers::ShortestPause(absl::Duration lease) {
  const absl::Duration now = clock_->Monotonic();
  away_.EraseIf([&](const Away& away) {
    return now >= away.until + away.pause + (away.there ? kMinAwayPause : lease);
  });
  absl::Duration shortest = absl::InfiniteDuration();
  for (const auto& [batch, away] : away_) {
    shortest = std::min(shortest, away.there ? kMinAwayPause : away.pause);
  }
  return shortest;
}

}  // namespace muster::controller
