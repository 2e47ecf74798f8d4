// ActuationWorker: looks at one target through the actuator, and gives it the order that was
// decided last: again and again while what is shown differs, with growing patience while it is
// refused. One that could only be met in part waits for the platform to show something else.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/scaling/actuator/actuator.h"
#include "services/scaling-agent/leader_election.h"

namespace muster::scaling_agent {

// What the actuator showed last.
struct TargetView {
  scaling::actuator::TargetState state;
  bool was_seen = false;                      // ever
  bool is_fresh = false;                      // not too long ago
  absl::Time ordered = absl::InfinitePast();  // when an order was carried out last
  // Why it cannot be looked at, and why an order is refused. OK: neither is so.
  absl::Status trouble;
};

// Thread-safe; one Step at a time. Step blocks for as long as the actuator does; nothing else
// waits.
class ActuationWorker {
 public:
  // The fencing token while we lead, and until when.
  using Token = std::function<std::optional<HeldToken>()>;
  // What became of an order. On the thread that steps, or that orders, without a lock held.
  using OnAnswer = std::function<void(const std::string& decision,
                                      const absl::StatusOr<scaling::actuator::Outcome>&)>;

  // `actuator` and `clock` are not owned.
  ActuationWorker(std::string target, scaling::actuator::Actuator* actuator, Token token,
                  OnAnswer on_answer, base::Clock* clock);

  // Whether such an order would change anything, as far as is known.
  bool Needs(const scaling::actuator::Order& order) const;
  // From now on this is wanted. One that was not given yet never will be: Aborted.
  void Want(scaling::actuator::Order order);
  // Nothing is wanted any more.
  void Rest();

  // Gives the order if it is due, and looks.
  void Step();

  TargetView view() const;
  // The actuator only tells what it would do.
  bool is_dry() const { return actuator_->kind() == "dry-run"; }

 private:
  bool NeedsLocked(const scaling::actuator::Order& order) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The same order has led to what is shown, and would again.
  bool IsInVainLocked(const scaling::actuator::Order& order) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::optional<scaling::actuator::Order> TakeDue();
  void Give(scaling::actuator::Order order);
  void Look();

  const std::string target_;
  scaling::actuator::Actuator* const actuator_;  // not owned
  const Token token_;
  const OnAnswer on_answer_;
  base::Clock* const clock_;  // not owned

  mutable base::Mutex mu_;
  std::optional<scaling::actuator::Order> wanted_ ABSL_GUARDED_BY(mu_);
  bool was_given_ ABSL_GUARDED_BY(mu_) = false;
  std::optional<scaling::actuator::Order> done_
      ABSL_GUARDED_BY(mu_);               // the last one that succeeded
  int reached_ ABSL_GUARDED_BY(mu_) = 0;  // what it came to
  absl::Duration done_at_ ABSL_GUARDED_BY(mu_) = -absl::InfiniteDuration();
  absl::Duration not_before_ ABSL_GUARDED_BY(mu_) = -absl::InfiniteDuration();
  absl::Duration pause_ ABSL_GUARDED_BY(mu_) = absl::ZeroDuration();
  TargetView view_ ABSL_GUARDED_BY(mu_);
  absl::Duration seen_at_ ABSL_GUARDED_BY(mu_) = -absl::InfiniteDuration();
  absl::Status looked_ ABSL_GUARDED_BY(mu_);
  absl::Status ordered_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::scaling_agent
