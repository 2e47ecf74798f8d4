// SPDX-License-Identifier: Apache-2.0

// LeaseTable: every message that a listener has leased and not yet settled. It bounds their number,
// keeps their newest receipts, knows which leases are due for renewal, and signals lost leases.
//
//   Reserve ─► Add ─► held ─► PinForCharge, Unpin ─► Begin ─► StartSettling ─► PinForSettle
//                      │ renewed every third of the visibility, until Remove        │
//                      └─ ReleaseUnbegun (stopping) ─► settling                     └─► Remove
//
// Each renewal replaces the receipt, so only one party may use it at a time: a thread pins the
// lease before it calls the store about it. No lock is held during the call.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <stop_token>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/listener/lease.h"
#include "muster/listener/metrics.h"
#include "muster/queue/queue_store.h"

namespace muster::listener {

// Thread-safe.
class LeaseTable {
 public:
  // A lease that is due, pinned for the LeaseRenewer.
  struct Renewal {
    LeasePtr lease;
    queue::Receipt receipt;
  };

  // Counts in `counters` each lease that is lost. Not owned; null: counts nothing.
  LeaseTable(base::Clock* clock, int max_unsettled, CounterSet* counters = nullptr);

  // Waits for room, then reserves up to `wanted` places. Returns how many; 0: AbortWaits was
  // called.
  int Reserve(int wanted) ABSL_LOCKS_EXCLUDED(mu_);
  void Unreserve(int places) ABSL_LOCKS_EXCLUDED(mu_);
  // Turns one reserved place per message into a lease of `visibility`. `received_at`:
  // Clock::Monotonic() before the Receive.
  std::vector<LeasePtr> Add(int partition, std::vector<queue::Message> messages,
                            absl::Duration received_at, absl::Duration visibility)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Ends all current and future waits in Reserve.
  void AbortWaits() ABSL_LOCKS_EXCLUDED(mu_);

  // Waits until no renewal is under way and pins the lease. FailedPrecondition: the lease is lost,
  // or may be lost by now. Cancelled: it was released.
  absl::StatusOr<queue::Receipt> PinForCharge(Lease& lease) ABSL_LOCKS_EXCLUDED(mu_);
  // Ends PinForCharge; `charged`: the store charged the attempt.
  void Unpin(Lease& lease, bool charged) ABSL_LOCKS_EXCLUDED(mu_);
  // Work on the message starts: from now on the lease is not released. Errors as for PinForCharge.
  absl::Status Begin(Lease& lease) ABSL_LOCKS_EXCLUDED(mu_);

  // Ends a lease that would be given back, and returns one of the same message and with the same
  // receipt, to be delivered again. `attempts` are charged; `unused`: the last of them was
  // refunded, and the next delivery takes it. nullptr: the lease is lost. StartSettling has
  // returned true.
  LeasePtr Keep(Lease& lease, int attempts, bool unused) ABSL_LOCKS_EXCLUDED(mu_);

  // Returns true for the first caller, which must pass the lease to the settler.
  bool StartSettling(Lease& lease) ABSL_LOCKS_EXCLUDED(mu_);
  // Calls StartSettling for every lease that has not begun, and returns these leases.
  std::vector<LeasePtr> ReleaseUnbegun() ABSL_LOCKS_EXCLUDED(mu_);
  // Waits until no renewal is under way and pins the lease until Remove, which must follow.
  // FailedPrecondition: the lease is known to be lost. A lease that only ran out by the local clock
  // is counted as lost, but still worth a try: possibly no receive took the message since.
  absl::StatusOr<queue::Receipt> PinForSettle(Lease& lease) ABSL_LOCKS_EXCLUDED(mu_);
  void Remove(Lease& lease) ABSL_LOCKS_EXCLUDED(mu_);

  // Waits until leases are due for renewal and pins them, at most `max`. Empty: CloseRenewals was
  // called.
  std::vector<Renewal> AwaitDue(int max) ABSL_LOCKS_EXCLUDED(mu_);
  void CloseRenewals() ABSL_LOCKS_EXCLUDED(mu_);
  // The results of a renewal; each unpins the lease. NotRenewed: the store did not answer; the
  // lease is due again soon. If it has run out, its stop token fires.
  void Renewed(Lease& lease, queue::Receipt receipt, absl::Duration asked_at)
      ABSL_LOCKS_EXCLUDED(mu_);
  void NotRenewed(Lease& lease) ABSL_LOCKS_EXCLUDED(mu_);
  void Lost(Lease& lease) ABSL_LOCKS_EXCLUDED(mu_);

  // Counts a lease that the store calls lost, unless its loss was counted before.
  void CountLost(Lease& lease) ABSL_LOCKS_EXCLUDED(mu_);

  bool lost(const Lease& lease) const ABSL_LOCKS_EXCLUDED(mu_);
  // Whether this holder was charged an attempt, begun or not.
  bool charged(const Lease& lease) const ABSL_LOCKS_EXCLUDED(mu_);
  std::stop_token TokenOf(Lease& lease) ABSL_LOCKS_EXCLUDED(mu_);
  // Fires the stop tokens of all leases, also of later ones.
  void StopAll() ABSL_LOCKS_EXCLUDED(mu_);

  // Number of leased and reserved places.
  int unsettled() const ABSL_LOCKS_EXCLUDED(mu_);
  // Number of leased messages.
  int leased() const ABSL_LOCKS_EXCLUDED(mu_);
  std::vector<int64_t> LeasedByPartition(size_t partitions) const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  using DueMap = std::multimap<absl::Duration, LeasePtr>;

  absl::Status CheckUsableLocked(Lease& lease) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Whether the lease has run out by the local clock. The store may not tell: it takes a receipt
  // whose message no other consumer has received meanwhile, and NATS takes any acknowledgement.
  bool HasRunOutLocked(Lease& lease) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Counts the lease as lost, once.
  void CountLostLocked(Lease& lease) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AwaitUnpinnedLocked(const Lease& lease) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void UnpinLocked(Lease& lease) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ScheduleLocked(Lease& lease, absl::Duration due) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::vector<Renewal> TakeDueLocked(int max) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Marks the lease as lost. Returns the stop source, which the caller fires after it lets go of
  // the lock.
  std::stop_source LoseLocked(Lease& lease) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  base::Clock* const clock_;  // not owned
  const int max_unsettled_;
  CounterSet* const counters_;  // not owned

  mutable base::Mutex mu_;
  base::CondVar room_;
  base::CondVar unpinned_;
  base::CondVar due_changed_;
  int unsettled_ ABSL_GUARDED_BY(mu_) = 0;
  int room_waiters_ ABSL_GUARDED_BY(mu_) = 0;
  int pin_waiters_ ABSL_GUARDED_BY(mu_) = 0;
  bool aborted_ ABSL_GUARDED_BY(mu_) = false;
  bool renewals_closed_ ABSL_GUARDED_BY(mu_) = false;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  DueMap due_ ABSL_GUARDED_BY(mu_);  // every lease, by the time of its renewal
  // When the LeaseRenewer wakes by itself. Leases that are due later need not wake it, so a steady
  // flow of short leases costs no notifications.
  absl::Duration renewer_wakes_ ABSL_GUARDED_BY(mu_) = absl::InfiniteDuration();
};

}  // namespace muster::listener
