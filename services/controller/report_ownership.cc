// SPDX-License-Identifier: Apache-2.0
#include "services/controller/report_ownership.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/retry.h"
#include "muster/base/status.h"
#include "muster/v1/partition_record.pb.h"

namespace muster::controller {
namespace {

constexpr int kCyclesOfLease = 4;
// Between two tries to open the report and count.
constexpr absl::Duration kMinOpenPause = absl::Milliseconds(100);
constexpr absl::Duration kMaxOpenPause = absl::Seconds(2);
// Of the record of the report; two controllers that start together both write it.
constexpr int kMaxBindAttempts = 4;

std::string ReportKey(const std::string& account) {
  return absl::StrCat("controller/", account, "/report");
}

absl::StatusOr<v1::CountedReport> DecodeReport(const sync::VersionedData& stored,
                                               const std::string& account) {
  v1::CountedReport record;
  if (record.ParseFromString(stored.data)) return record;
  return absl::DataLossError(absl::StrCat(ReportKey(account), ": the record makes no sense"));
}

absl::Status IsAnotherReport(const v1::CountedReport& counted, const std::string& mine) {
  const std::string have = mine.empty() ? "has a new one" : absl::StrCat("has ", mine);
  return absl::FailedPreconditionError(absl::StrCat(
      "this mesh counts into report ", counted.report(), ", of ", counted.instance(),
      ", and this controller ", have,
      ": start it with the data directory of that report, or "
      "restore that from a backup; to count into this one from now on, with nothing of what the "
      "other holds, add --replace-report ",
      counted.report()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ReportOwnership>> ReportOwnership::Create(
    OwnershipOptions options, sync::OptimisticSyncStore* sync, OwnedCounting counting,
    base::Clock* clock) {
  std::unique_ptr<ReportOwnership> ownership(
      new ReportOwnership(std::move(options), sync, std::move(counting), clock));
  const absl::StatusOr<report::ReportIdentity> identity = ownership->counting_.identity();
  // What the report remembers counts, even if the store has lost its records.
  if (identity.ok()) ownership->least_epoch_ = static_cast<int64_t>(identity->epoch) + 1;
  MUSTER_RETURN_IF_ERROR(ownership->CheckReport().status());
  return ownership;
}

ReportOwnership::ReportOwnership(OwnershipOptions options, sync::OptimisticSyncStore* sync,
                                 OwnedCounting counting, base::Clock* clock)
    : options_(std::move(options)),
      sync_(sync),
      counting_(std::move(counting)),
      clock_(clock),
      thread_([this] { Run(); }) {}

ReportOwnership::~ReportOwnership() { Stop(); }

absl::Status ReportOwnership::Join() {
  base::MutexLock joining(&join_mu_);
  if (leaving_) return absl::CancelledError("this controller stops");
  partition::MemberOptions member;
  member.group = absl::StrCat("controller/", options_.account);
  member.member = options_.instance;
  member.lease = options_.lease;
  member.interval = options_.lease / kCyclesOfLease;
  member.grace = member.interval;
  member.looks_first = false;
  member.predecessors = options_.predecessors;
  member.least_epoch = least_epoch_;
  MUSTER_ASSIGN_OR_RETURN(auto joined, partition::PartitionMember::Start(member, sync_, this,
                                                                         clock_, options_.metrics));
  base::MutexLock lock(&mu_);
  member_ = std::move(joined);
  changed_.NotifyAll();
  return absl::OkStatus();
}

void ReportOwnership::Stop() {
  {
    base::MutexLock joining(&join_mu_);
    leaving_ = true;
  }
  // It is not set any more.
  if (member_ != nullptr) member_->Stop();
  {
    base::MutexLock lock(&mu_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

absl::StatusOr<bool> ReportOwnership::CheckReport() {
  // The record before the file: its report was there before it.
  MUSTER_ASSIGN_OR_RETURN(const sync::VersionedData stored,
                          sync_->Get(ReportKey(options_.account)));
  const absl::StatusOr<report::ReportIdentity> identity = counting_.identity();
  if (!identity.ok() && !absl::IsNotFound(identity.status())) return identity.status();
  if (stored.version == sync::kAbsent) return false;
  MUSTER_ASSIGN_OR_RETURN(const v1::CountedReport counted, DecodeReport(stored, options_.account));
  const std::string mine = identity.ok() ? identity->report : "";
  const bool is_right = counted.report() == mine || counted.report() == options_.replaced_report;
  if (is_right) return true;
  return IsAnotherReport(counted, mine);
}

absl::Status ReportOwnership::BindReport() {
  MUSTER_ASSIGN_OR_RETURN(const report::ReportIdentity identity, counting_.identity());
  const std::string key = ReportKey(options_.account);
  for (int attempt = 0; attempt < kMaxBindAttempts; ++attempt) {
    MUSTER_ASSIGN_OR_RETURN(const sync::VersionedData stored, sync_->Get(key));
    MUSTER_ASSIGN_OR_RETURN(v1::CountedReport counted, DecodeReport(stored, options_.account));
    if (counted.report() == identity.report) return absl::OkStatus();
    const bool is_free =
        stored.version == sync::kAbsent || counted.report() == options_.replaced_report;
    if (!is_free) return IsAnotherReport(counted, identity.report);
    counted.set_report(identity.report);
    counted.set_instance(options_.instance);
    MUSTER_ASSIGN_OR_RETURN(const bool written,
                            sync_->TryWrite(key, counted.SerializeAsString(), stored.version));
    if (written) return absl::OkStatus();
  }
  return absl::UnavailableError(absl::StrCat(key, ": others were first"));
}

absl::Status ReportOwnership::Begin(int64_t epoch) {
  MUSTER_RETURN_IF_ERROR(CheckReport().status());
  MUSTER_RETURN_IF_ERROR(counting_.begin({options_.instance, static_cast<uint64_t>(epoch)}));
  return BindReport();
}

void ReportOwnership::Run() {
  base::MutexLock lock(&mu_);
  while (!stopping_) {
    if (counts_.has_value() && wanted_ != counts_) {
      EndLocked();
      continue;
    }
    const bool due = wanted_.has_value() && !begun_ && clock_->Monotonic() >= again_at_;
    if (due) {
      BeginLocked();
      continue;
    }
    const bool waits = wanted_.has_value() && !begun_;
    clock_->WaitUntil(&changed_, &mu_, waits ? again_at_ : absl::InfiniteDuration());
  }
  if (counts_.has_value()) EndLocked();
}

void ReportOwnership::BeginLocked() {
  counts_ = wanted_;
  const int64_t epoch = *counts_;
  mu_.Unlock();
  const absl::Status begun = Begin(epoch);
  if (!begun.ok()) counting_.end();
  mu_.Lock();
  begun_ = begun.ok();
  failures_ = begun.ok() ? 0 : failures_ + 1;
  again_at_ = clock_->Monotonic() +
              (begun.ok() ? absl::ZeroDuration()
                          : base::ExponentialBackoff(failures_, kMinOpenPause, kMaxOpenPause));
  if (begun.ok()) {
    base::Log(base::kInfo, "this controller counts",
              {{"instance", options_.instance}, {"epoch", epoch}});
  } else if (begun.code() != trouble_.code()) {
    base::Log(base::kError, "this controller should count and cannot; it is tried again",
              {{"instance", options_.instance}, {"why", begun.ToString()}});
  }
  trouble_ = begun;
  changed_.NotifyAll();
}

void ReportOwnership::EndLocked() {
  const bool counted = std::exchange(begun_, false);
  mu_.Unlock();
  if (counted) {
    counting_.end();
    base::Log(base::kInfo, "this controller counts no more", {{"instance", options_.instance}});
  }
  mu_.Lock();
  counts_.reset();
  trouble_ = absl::OkStatus();
  failures_ = 0;
  again_at_ = absl::ZeroDuration();
  const std::optional<int64_t> drained = std::exchange(drains_, std::nullopt);
  changed_.NotifyAll();
  if (!drained.has_value() || member_ == nullptr) return;
  mu_.Unlock();
  member_->Drained(0, *drained);
  mu_.Lock();
}

void ReportOwnership::OnAssigned(int, int64_t epoch) {
  base::MutexLock lock(&mu_);
  wanted_ = epoch;
  changed_.NotifyAll();
}

void ReportOwnership::OnDraining(int, int64_t epoch, absl::Duration) {
  base::MutexLock lock(&mu_);
  wanted_.reset();
  // The member calls from its start on, and Join is about to set it.
  while (member_ == nullptr) changed_.Wait(&mu_);
  // Where nothing was begun yet, nothing is to be finished.
  if (counts_.has_value()) {
    drains_ = epoch;
    changed_.NotifyAll();
    return;
  }
  mu_.Unlock();
  member_->Drained(0, epoch);
  mu_.Lock();
}

void ReportOwnership::OnRevoked(int, int64_t) {
  base::MutexLock lock(&mu_);
  wanted_.reset();
  changed_.NotifyAll();
  while (counts_.has_value()) changed_.Wait(&mu_);
}

absl::Status ReportOwnership::AwaitCounting(absl::Duration patience) {
  const absl::Duration deadline = clock_->Monotonic() + patience;
  {
    base::MutexLock lock(&mu_);
    while (!begun_ && trouble_.ok() && clock_->Monotonic() < deadline) {
      clock_->WaitUntil(&changed_, &mu_, deadline);
    }
    if (begun_) return absl::OkStatus();
    if (!trouble_.ok()) return trouble_;
  }
  // When it was created, no report may have been counted into yet.
  MUSTER_RETURN_IF_ERROR(CheckStandby());
  base::MutexLock lock(&mu_);
  const std::string owner = member_ == nullptr ? "" : member_->OwnerOf(0);
  return absl::UnavailableError(owner.empty() || owner == options_.instance
                                    ? "no controller counts the results of this mesh yet"
                                    : absl::StrCat("standby: ", owner,
                                                   " counts the results of this mesh, and this "
                                                   "controller takes over when that one ends"));
}

absl::Status ReportOwnership::CheckStandby() {
  {
    base::MutexLock lock(&mu_);
    if (may_count_) return absl::OkStatus();
  }
  MUSTER_ASSIGN_OR_RETURN(const bool may_count, CheckReport());
  base::MutexLock lock(&mu_);
  may_count_ = may_count;
  return absl::OkStatus();
}

std::optional<std::string> ReportOwnership::StandbyFor() const {
  base::MutexLock lock(&mu_);
  if (begun_) return std::nullopt;
  const std::string owner = member_ == nullptr ? "" : member_->OwnerOf(0);
  return owner == options_.instance ? "" : owner;
}

}  // namespace muster::controller
