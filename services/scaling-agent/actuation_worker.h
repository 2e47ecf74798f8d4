// SPDX-License-Identifier: Apache-2.0

// ActuationWorker: observes one target through the actuator and gives it the latest order. While
// the platform shows something else than the order, the worker repeats the order; after a refusal
// it waits longer before each repetition. An order that the actuator could meet only in part waits
// until the platform shows a change.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/actuator/actuator.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "services/scaling-agent/leader_election.h"

namespace muster::scaling_agent {

// The last observation of the actuator, and how current it is.
struct TargetView {
  actuator::TargetState state;
  bool was_seen = false;                      // ever
  bool is_fresh = false;                      // younger than kTargetStateLifetime
  absl::Time ordered = absl::InfinitePast();  // when the actuator last carried out an order
  // Why observing fails, and why the actuator refuses an order. OK: neither happens.
  absl::Status trouble;
};

// Thread-safe; one Step at a time. Step blocks for as long as the actuator does; no other call
// blocks.
class ActuationWorker {
 public:
  // The fencing token and its expiry while this agent leads; nullopt: it does not lead.
  using Token = std::function<std::optional<HeldToken>()>;
  // Receives the outcome of an order. Called without a lock held, on the thread that calls Step or
  // Want.
  using OnAnswer =
      std::function<void(const std::string& decision, const absl::StatusOr<actuator::Outcome>&)>;

  // `actuator` and `clock` are not owned.
  ActuationWorker(std::string target, actuator::Actuator* actuator, Token token, OnAnswer on_answer,
                  base::Clock* clock);

  // Whether `order` would change anything, judged by the last observation.
  bool Needs(const actuator::Order& order) const ABSL_LOCKS_EXCLUDED(mu_);
  // Replaces the wanted order. An earlier order that the actuator has not received yet is dropped;
  // if it would have changed anything, OnAnswer receives Aborted for it.
  void Want(actuator::Order order) ABSL_LOCKS_EXCLUDED(mu_);
  // Drops the wanted order.
  void Rest() ABSL_LOCKS_EXCLUDED(mu_);

  // Gives the order to the actuator if it is due, then observes the target.
  void Step() ABSL_LOCKS_EXCLUDED(mu_);

  TargetView view() const ABSL_LOCKS_EXCLUDED(mu_);
  // True: the actuator reports what it would do and changes nothing.
  bool is_dry() const { return actuator_->kind() == "dry-run"; }

 private:
  bool NeedsLocked(const actuator::Order& order) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The actuator has carried out the same order already, and repeating it would change nothing.
  bool IsInVainLocked(const actuator::Order& order) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::optional<actuator::Order> TakeDue() ABSL_LOCKS_EXCLUDED(mu_);
  void Give(actuator::Order order) ABSL_LOCKS_EXCLUDED(mu_);
  void Look() ABSL_LOCKS_EXCLUDED(mu_);

  const std::string target_;
  actuator::Actuator* const actuator_;  // not owned
  const Token token_;
  const OnAnswer on_answer_;
  base::Clock* const clock_;  // not owned

  mutable base::Mutex mu_;
  std::optional<actuator::Order> wanted_ ABSL_GUARDED_BY(mu_);
  bool was_given_ ABSL_GUARDED_BY(mu_) = false;
  std::optional<actuator::Order> done_ ABSL_GUARDED_BY(mu_);  // the last order that succeeded
  int reached_ ABSL_GUARDED_BY(mu_) = 0;                      // `after` of its outcome
  absl::Duration done_at_ ABSL_GUARDED_BY(mu_) = -absl::InfiniteDuration();
  absl::Duration not_before_ ABSL_GUARDED_BY(mu_) = -absl::InfiniteDuration();
  absl::Duration pause_ ABSL_GUARDED_BY(mu_) = absl::ZeroDuration();
  TargetView view_ ABSL_GUARDED_BY(mu_);
  absl::Duration seen_at_ ABSL_GUARDED_BY(mu_) = -absl::InfiniteDuration();
  absl::Status looked_ ABSL_GUARDED_BY(mu_);
  absl::Status ordered_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::scaling_agent
