// SPDX-License-Identifier: Apache-2.0

// ReportOwnership: which of the controllers of a mesh counts. They are members of a group with one
// partition (muster/partition): its owner counts, the others are standby. The epoch of the
// ownership goes into the report and fences each change of it, so that an owner which was
// suspended, and has been taken over from, changes nothing more.
//
// A mesh counts into one report: the record "controller/ACCOUNT/report" names it by the id in its
// file, and a controller with another report is refused.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/partition/partition_member.h"
#include "muster/report/report_store.h"
#include "muster/sync/optimistic_sync_store.h"
#include "muster/telemetry/registry.h"

namespace muster::controller {

// A standby takes over so long after the owner's last sign of life, and a cycle, at the latest: a
// quarter of it. Of an orderly stop it learns within a cycle.
inline constexpr absl::Duration kOwnershipLease = absl::Seconds(8);

struct OwnershipOptions {
  std::string account;
  std::string instance;
  absl::Duration lease = kOwnershipLease;
  // The id of the report that this controller's report replaces, if the mesh counts into that;
  // empty: none.
  std::string replaced_report;
  // Controllers of this data directory that are known to be dead (controller_seat.h).
  std::vector<std::string> predecessors;
  telemetry::Registry* metrics = nullptr;  // not owned, outlives the ownership; may be null
};

// Called on the thread of the ownership, one at a time.
struct OwnedCounting {
  // Which report this controller has. NotFound: none yet, or it has no id.
  std::function<absl::StatusOr<report::ReportIdentity>()> identity;
  // Opens the report, makes it if there is none, and begins to count. Called again after an error.
  std::function<absl::Status(const report::ReportOwner& owner)> begin;
  // When it returns, nothing more is written to the report. Follows each `begin`, also a failed
  // one.
  std::function<void()> end;
};

// Thread-safe. Has a thread of its own beside those of its PartitionMember.
class ReportOwnership final : public partition::PartitionWork {
 public:
  // FailedPrecondition: the mesh counts into another report; the message says into which, and how
  // to change that. `sync` and `clock` are not owned. Errors of the store are passed on.
  static absl::StatusOr<std::unique_ptr<ReportOwnership>> Create(OwnershipOptions options,
                                                                 sync::OptimisticSyncStore* sync,
                                                                 OwnedCounting counting,
                                                                 base::Clock* clock);
  ~ReportOwnership() override;  // Stop()s

  // Joins the other controllers. Call it once. Cancelled: it is stopped, and joins nobody.
  absl::Status Join() ABSL_LOCKS_EXCLUDED(join_mu_, mu_);
  // Ends the counting and gives the ownership up, so that a standby takes over at once. Safe to
  // call twice, before Join, and during it: it waits for Join, which is short.
  void Stop() ABSL_LOCKS_EXCLUDED(join_mu_, mu_);

  // OK: this controller counts. Unavailable after `patience`: it is standby; the message names the
  // instance that counts. FailedPrecondition: the mesh counts into another report, so that this one
  // never takes over. Else the error that keeps it from counting; it is tried again all the same.
  absl::Status AwaitCounting(absl::Duration patience) ABSL_LOCKS_EXCLUDED(mu_);
  // The instance that counts while this controller is standby, empty if that is not known; nullopt:
  // this one counts.
  std::optional<std::string> StandbyFor() const ABSL_LOCKS_EXCLUDED(mu_);

  void OnAssigned(int partition, int64_t epoch) override;
  void OnDraining(int partition, int64_t epoch, absl::Duration deadline) override;
  void OnRevoked(int partition, int64_t epoch) override;

 private:
  ReportOwnership(OwnershipOptions options, sync::OptimisticSyncStore* sync, OwnedCounting counting,
                  base::Clock* clock);

  // Whether the mesh counts into this controller's report, or one that it replaces; false: into
  // none yet. FailedPrecondition: into another one.
  absl::StatusOr<bool> CheckReport();
  // As CheckReport, until that was true once.
  absl::Status CheckStandby() ABSL_LOCKS_EXCLUDED(mu_);
  // Has the mesh count into this controller's report from now on, which is open.
  absl::Status BindReport();
  absl::Status Begin(int64_t epoch);
  void Run() ABSL_LOCKS_EXCLUDED(mu_);
  void BeginLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const OwnershipOptions options_;
  sync::OptimisticSyncStore* const sync_;  // not owned
  const OwnedCounting counting_;
  base::Clock* const clock_;  // not owned
  int64_t least_epoch_ = 1;   // of a claim; set before Join

  base::Mutex join_mu_;  // before mu_
  bool leaving_ ABSL_GUARDED_BY(join_mu_) = false;
  mutable base::Mutex mu_;
  base::CondVar changed_;
  std::optional<int64_t> wanted_ ABSL_GUARDED_BY(mu_);  // epoch under which to count
  std::optional<int64_t> counts_ ABSL_GUARDED_BY(mu_);  // under which it counts, or tries to
  bool begun_ ABSL_GUARDED_BY(mu_) = false;             // it counts
  bool may_count_ ABSL_GUARDED_BY(mu_) = false;         // the report is known to be the right one
  absl::Status trouble_ ABSL_GUARDED_BY(mu_);           // why it does not, although it should
  int failures_ ABSL_GUARDED_BY(mu_) = 0;               // in a row
  absl::Duration again_at_ ABSL_GUARDED_BY(mu_);        // after a failure
  std::optional<int64_t> drains_ ABSL_GUARDED_BY(mu_);  // to be told that it has drained
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;

  std::unique_ptr<partition::PartitionMember> member_;  // set by Join, under both mutexes
  std::thread thread_;
};

}  // namespace muster::controller
