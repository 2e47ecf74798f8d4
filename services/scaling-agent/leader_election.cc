// SPDX-License-Identifier: Apache-2.0
#include "services/scaling-agent/leader_election.h"

#include <algorithm>
#include <utility>

#include "muster/base/check.h"
#include "muster/base/status.h"

namespace muster::scaling_agent {

namespace {

// The holder uses only 90 % of its lease, because clocks run at slightly different speeds.
absl::Duration OwnShare(absl::Duration lease) { return lease - lease / 10; }

}  // namespace

LeaderElection::LeaderElection(ElectionOptions options, sync::OptimisticSyncStore* store,
                               base::Clock* clock)
    : options_(std::move(options)), store_(store), clock_(clock) {
  // Other agents cut a longer lease to kMaxLeaseDuration, and would lead beside this one.
  MUSTER_CHECK(options_.duration > absl::ZeroDuration() && options_.duration <= kMaxLeaseDuration,
               "lease of ", absl::FormatDuration(options_.duration), ", at most ",
               absl::FormatDuration(kMaxLeaseDuration));
}

absl::StatusOr<bool> LeaderElection::Hold() {
  base::MutexLock step(&steps_);
  const absl::Duration began = clock_->Monotonic();
  uint64_t version = sync::kAbsent;
  MUSTER_ASSIGN_OR_RETURN(LeaderRecord record, ReadLocked(&version));
  highest_seen_ = std::max(highest_seen_, record.token);
  const bool ours = IsOursLocked(record);
  if (!ours && IsInForceLocked(record, version)) return Follow(record);
  if (!ours) {
    // Continue from the highest token seen, in case the record was deleted: tokens must never
    // repeat.
    record.token = tried_ = highest_seen_ + 1;
    record.beat = 0;
  }
  record.holder = options_.instance;
  record.address = options_.address;
  record.duration = options_.duration;
  ++record.beat;
  return WriteLocked(record, version, began);
}

absl::StatusOr<LeaderRecord> LeaderElection::ReadLocked(uint64_t* version) {
  MUSTER_ASSIGN_OR_RETURN(const sync::VersionedData read, store_->Get(kLeaderKey));
  *version = read.version;
  if (read.version == sync::kAbsent) return LeaderRecord();
  absl::StatusOr<LeaderRecord> record = DecodeLeaderRecord(read.data);
  if (!record.ok()) return base::Annotate(record.status(), kLeaderKey);
  return record;
}

// The token tells this process from an earlier process of the same instance name. A write whose
// answer was lost still counts as ours, because tried_ was set before it.
bool LeaderElection::IsOursLocked(const LeaderRecord& record) const {
  return tried_ != 0 && record.holder == options_.instance && record.token == tried_;
}

bool LeaderElection::IsInForceLocked(const LeaderRecord& record, uint64_t version) {
  if (record.holder.empty()) return false;
  const absl::Duration now = clock_->Monotonic();
  if (version != seen_version_) {
    seen_version_ = version;
    seen_since_ = now;
  }
  return now < seen_since_ + record.duration;
}

absl::StatusOr<bool> LeaderElection::WriteLocked(const LeaderRecord& record, uint64_t version,
                                                 absl::Duration began) {
  MUSTER_ASSIGN_OR_RETURN(const bool written,
                          store_->TryWrite(kLeaderKey, Encode(record), version));
  // Another agent wrote first, or our own earlier write succeeded and its answer was lost: the next
  // step finds out.
  if (!written) return Token().has_value();
  highest_seen_ = std::max(highest_seen_, record.token);
  Lead(record, began);
  return true;
}

void LeaderElection::Lead(const LeaderRecord& record, absl::Duration began) {
  base::MutexLock lock(&mu_);
  MUSTER_CHECK(record.holder == options_.instance && record.token >= token_, "holder ",
               record.holder, ", token ", record.token, " after ", token_);
  leader_ = record;
  token_ = record.token;
  until_ = began + OwnShare(record.duration);
}

bool LeaderElection::Follow(const LeaderRecord& record) {
  base::MutexLock lock(&mu_);
  leader_ = record;
  token_ = 0;
  return false;
}

std::optional<int64_t> LeaderElection::Token() const {
  const std::optional<HeldToken> held = Held();
  return held.has_value() ? std::optional(held->token) : std::nullopt;
}

std::optional<HeldToken> LeaderElection::Held() const {
  base::MutexLock lock(&mu_);
  if (token_ == 0 || clock_->Monotonic() >= until_) return std::nullopt;
  return HeldToken{token_, until_};
}

absl::Status LeaderElection::Release() {
  base::MutexLock step(&steps_);
  uint64_t version = sync::kAbsent;
  absl::StatusOr<LeaderRecord> record = ReadLocked(&version);
  // Drop the token first: even if the write fails, this agent must not act any more.
  const bool ours = record.ok() && IsOursLocked(*record);
  if (record.ok() && ours) record->holder = record->address = "";
  Follow(record.ok() ? *record : LeaderRecord());
  MUSTER_RETURN_IF_ERROR(record.status());
  if (!ours) return absl::OkStatus();
  tried_ = 0;
  return store_->TryWrite(kLeaderKey, Encode(*record), version).status();
}

LeaderRecord LeaderElection::leader() const {
  base::MutexLock lock(&mu_);
  return leader_;
}

}  // namespace muster::scaling_agent
