// SPDX-License-Identifier: Apache-2.0

// DeliveryBatch: one received batch while a subscriber works on it. It charges attempts, judges
// settlements, and at the end accounts for every message of the batch.
#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "muster/base/mutex.h"
#include "muster/listener/dequeue_task.h"
#include "muster/listener/lease_table.h"
#include "muster/listener/settler.h"
#include "muster/listener/subscriber.h"
#include "muster/listener/verdict.h"

namespace muster::listener {

// Thread-safe, like DeliveryContext. The task of the batch calls Run once.
class DeliveryBatch final : public DeliveryContext {
 public:
  // `environment` is not owned. `uniform` yields the jitter of retry delays; the others are as of
  // Delivery.
  DeliveryBatch(const TaskEnvironment& environment, std::vector<LeasePtr> leases,
                base::UniformSource uniform, absl::Duration asked_at, absl::Duration received_at);

  // Passes the batch to `subscriber`, and afterwards every unsettled message to the settler. Gives
  // messages up without a run if their earlier holders died too often.
  void Run(Subscriber& subscriber) ABSL_LOCKS_EXCLUDED(charging_mu_, mu_);

  // How many of the messages were settled for other listeners (Settlement::wanted) so far.
  int left_to_others() const ABSL_LOCKS_EXCLUDED(mu_);

  absl::Status Begin(Delivery& delivery) override ABSL_LOCKS_EXCLUDED(charging_mu_, mu_);
  void Settle(const Delivery& delivery, Settlement settlement) override ABSL_LOCKS_EXCLUDED(mu_);
  std::stop_token stop_token(const Delivery& delivery) override ABSL_LOCKS_EXCLUDED(mu_);
  std::stop_token stop_token() const override ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Slot {
    LeasePtr lease;
    int attempts = 0;                    // charged
    std::optional<absl::Status> charge;  // whether one of them is ours; nullopt: not asked for
    bool begun = false;                  // we work on it
    absl::Duration begun_at;             // and since when
    bool settled = false;                // a verdict was found
    std::optional<Verdict> given_up;     // waits for the subscriber to say what to put out

    bool charged() const { return charge.has_value() && charge->ok(); }
    // Whether the store left open if it charged the attempt.
    bool unsure() const;
  };
  // Slots that one call charges.
  struct Together {
    std::vector<size_t> slots;
    std::vector<LeasePtr> leases;          // theirs, pinned
    std::vector<queue::Receipt> receipts;  // of these
  };

  // Passes to the settler what the listener does not keep.
  void PassOn(std::vector<Settler::Item> items) ABSL_LOCKS_EXCLUDED(mu_);
  std::vector<Delivery> TakeDeliverable() ABSL_LOCKS_EXCLUDED(mu_);
  // Answers the exception's text; empty: there was none.
  std::string RunGuarded(Subscriber& subscriber, absl::Span<Delivery> deliveries)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Returns the item for the settler; nullopt if the slot was settled before, or must wait.
  std::optional<Settler::Item> JudgeLocked(Slot& slot, Settlement settlement)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SettleLeftovers(const std::string& failure) ABSL_LOCKS_EXCLUDED(mu_);
  void CheckAllSettled() ABSL_LOCKS_EXCLUDED(mu_);
  Settlement LeftoverSettlement(const Slot& slot, const std::string& failure) const;
  void ConcludeGivenUp(Subscriber& subscriber) ABSL_LOCKS_EXCLUDED(mu_);
  void AskForOutputs(Subscriber& subscriber, Settler::Item& item) ABSL_LOCKS_EXCLUDED(mu_);
  // Charges the message in `slot`. If it is a first attempt and the store lets attempts begin
  // together, also charges the first attempts of the messages after it, which this task will start
  // within a moment.
  void ChargeFrom(size_t slot) ABSL_LOCKS_EXCLUDED(mu_) ABSL_EXCLUSIVE_LOCKS_REQUIRED(charging_mu_);
  bool IsCharged(size_t slot) ABSL_LOCKS_EXCLUDED(mu_);  // or the store refused
  Together PinTogether(size_t slot) ABSL_LOCKS_EXCLUDED(mu_);
  // Returns the next slot after `after` that may be charged together with `slot`; nullopt if there
  // is none.
  std::optional<size_t> NextFirstLocked(size_t slot, size_t after) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status NoteCharge(Lease& lease, const absl::StatusOr<int>& attempts)
      ABSL_LOCKS_EXCLUDED(mu_);

  const TaskEnvironment& environment_;
  const absl::Duration asked_at_;
  const absl::Duration received_at_;
  base::Mutex charging_mu_;  // held during a charge: threads of jointly charged messages wait
  mutable base::Mutex mu_;
  base::UniformSource uniform_ ABSL_GUARDED_BY(mu_);
  // One value for the whole batch: messages that were received together become visible together,
  // and are announced together.
  const double uniform_for_others_;
  int left_to_others_ ABSL_GUARDED_BY(mu_) = 0;
  std::optional<absl::Duration> away_ ABSL_GUARDED_BY(mu_);  // at least, of messages for others
  std::vector<Slot> slots_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::listener
