#include "services/controller/away_ledgers.h"

#include <algorithm>

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
constexpr size_t kMaxAway = 1000;

}  // namespace

absl::Status AwayLedgers::MayAsk(uint64_t batch) const {
  const auto away = away_.find(batch);
  if (away == away_.end() || clock_->Monotonic() >= away->second.until) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(CheckGrace(batch, away->second));
  return absl::UnavailableError("its ledger does not answer");
}

absl::Status AwayLedgers::NoteAway(uint64_t batch, const absl::Status& why) {
  const absl::Duration now = clock_->Monotonic();
  // The lowest batch goes: it is noted again when its results come again.
  if (!away_.contains(batch) && away_.size() >= kMaxAway) away_.erase(away_.begin());
  const auto [entry, is_new] = away_.try_emplace(batch);
  Away& away = entry->second;
  away.pause = is_new ? kMinAwayPause : std::min(away.pause * 2, kMaxAwayPause);
  away.until = now + away.pause;
  if (!ledger::IsUnknownToAll(why)) {
    away.unknown_since.reset();
  } else if (!away.unknown_since.has_value()) {
    away.unknown_since = now;
  }
  MUSTER_RETURN_IF_ERROR(CheckGrace(batch, away));
  return why;
}

absl::Status AwayLedgers::CheckGrace(uint64_t batch, const Away& away) const {
  if (!away.unknown_since.has_value()) return absl::OkStatus();
  if (clock_->Monotonic() - *away.unknown_since < unknown_grace_) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("no initiator has had the ledger of batch ", batch,
                                                 " for ", base::DurationToString(unknown_grace_)));
}

absl::Duration AwayLedgers::PauseOf(uint64_t batch) const {
  const auto away = away_.find(batch);
  MUSTER_CHECK(away != away_.end(), "batch ", batch, " is not away");
  return away->second.pause;
}

// A result that comes during the pause is put back for a whole one.
absl::Duration AwayLedgers::ShortestPause(absl::Duration lease) {
  const absl::Duration now = clock_->Monotonic();
  std::erase_if(away_, [&](const auto& entry) {
    return now >= entry.second.until + entry.second.pause + lease;
  });
  absl::Duration shortest = absl::InfiniteDuration();
  for (const auto& [batch, away] : away_) shortest = std::min(shortest, away.pause);
  return shortest;
}

}  // namespace muster::controller
