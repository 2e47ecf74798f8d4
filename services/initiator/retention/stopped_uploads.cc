// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/retention/stopped_uploads.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "muster/base/quantity.h"
#include "muster/rpc/status.h"

namespace muster::initiator::retention {
namespace {

// An operator may cancel some at any time.
constexpr absl::Duration kSoonest = absl::Seconds(1);
constexpr absl::Duration kLatest = absl::Minutes(5);

}  // namespace

void StoppedUploads::Add(uint64_t batch, uint64_t bytes, absl::Duration expires_at) {
  base::MutexLock lock(&mu_);
  RemoveLocked(batch);
  AddLocked(batch, {bytes, expires_at});
}

void StoppedUploads::Remove(uint64_t batch) {
  base::MutexLock lock(&mu_);
  RemoveLocked(batch);
}

void StoppedUploads::AddLocked(uint64_t batch, const Stopped& stopped) {
  stopped_.emplace(batch, stopped);
  by_expiry_.emplace(stopped.expires_at, batch);
  bytes_ += stopped.bytes;
}

void StoppedUploads::RemoveLocked(uint64_t batch) {
  const auto found = stopped_.find(batch);
  if (found == stopped_.end()) return;
  by_expiry_.erase({found->second.expires_at, batch});
  bytes_ -= found->second.bytes;
  stopped_.erase(found);
}

StoppedUploads::Totals StoppedUploads::totals() const {
  base::MutexLock lock(&mu_);
  return {stopped_.size(), bytes_};
}

absl::Status StoppedUploads::CheckRoom() {
  base::MutexLock lock(&mu_);
  if (stopped_.size() < static_cast<size_t>(limits_.max_stopped) &&
      bytes_ < static_cast<uint64_t>(limits_.max_stopped_bytes)) {
    return absl::OkStatus();
  }
  const absl::Duration next = absl::Ceil(
      by_expiry_.empty() ? kLatest : by_expiry_.begin()->first - clock_->Monotonic(), kSoonest);
  absl::Status refused = absl::ResourceExhaustedError(absl::StrCat(
      stopped_.size(), " uploads that were cut off, of ",
      base::BytesToString(static_cast<int64_t>(bytes_)),
      ", wait here for their clients, and no further one begins (--max-stopped-uploads ",
      limits_.max_stopped, ", --max-stopped-upload-bytes ",
      base::BytesToString(limits_.max_stopped_bytes),
      "): go on with some or cancel them (`muster batch list --state open` lists them); the next ",
      "one expires in ", base::DurationToString(std::max(next, absl::ZeroDuration()))));
  refused = rpc::WithRetryAfter(std::move(refused), std::clamp(next, kSoonest, kLatest));
  return rpc::WithReason(std::move(refused), {"TOO_MANY_STOPPED_UPLOADS",
                                              {{"uploads", absl::StrCat(stopped_.size())},
                                               {"bytes", absl::StrCat(bytes_)}}});
}

std::vector<uint64_t> StoppedUploads::Expired(size_t max) {
  base::MutexLock lock(&mu_);
  std::vector<uint64_t> expired;
  const absl::Duration now = clock_->Monotonic();
  for (const auto& [at, batch] : by_expiry_) {
    if (at > now || expired.size() >= max) break;
    expired.push_back(batch);
  }
  return expired;
}

bool StoppedUploads::HasExpired(uint64_t batch) {
  base::MutexLock lock(&mu_);
  const auto found = stopped_.find(batch);
  return found != stopped_.end() && found->second.expires_at <= clock_->Monotonic();
}

void StoppedUploads::Postpone(uint64_t batch, absl::Duration pause) {
  base::MutexLock lock(&mu_);
  const auto found = stopped_.find(batch);
  if (found == stopped_.end()) return;
  const Stopped later = {found->second.bytes, clock_->Monotonic() + pause};
  RemoveLocked(batch);
  AddLocked(batch, later);
}

}  // namespace muster::initiator::retention
