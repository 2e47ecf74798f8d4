// SPDX-License-Identifier: Apache-2.0

// OrderGate decides whether an actuator may carry out an order. ScaleDownOrder decides which
// replicas go first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/actuator/actuator.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"

namespace muster::actuator {

// Thread-safe.
class OrderGate {
 public:
  // `clock` is not owned.
  explicit OrderGate(const base::Clock* clock) : clock_(clock) {}

  // InvalidArgument: the order has a negative number. Aborted: the order has expired (not_after);
  // call Admit again after each wait. FailedPrecondition: its fencing token is lower than one that
  // was admitted before, for any target.
  absl::Status Admit(const Order& order) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  const base::Clock* const clock_;  // not owned
  base::Mutex mu_;
  int64_t highest_ ABSL_GUARDED_BY(mu_) = 0;
};

// The error for an order with a lower token than `known`.
absl::Status StaleToken(const Order& order, int64_t known);

// ScaleDownOrder: which replicas go first when a target shrinks, where the actuator has the choice.

// First the replicas that the order names, in its order; then replicas that are not ready, then
// ready ones, each group with the newest first and equal ones by name.
class ScaleDownOrder {
 public:
  using Rank = std::tuple<size_t, bool, absl::Duration, absl::string_view>;

  // `let_go_first` outlives it.
  explicit ScaleDownOrder(const std::vector<std::string>& let_go_first);

  // The replica with the lower rank goes first. The rank refers to `name`, which must outlive it.
  Rank RankOf(absl::string_view name, ReplicaState state, absl::Time started) const;

 private:
  std::map<absl::string_view, size_t> wishes_;
};

// The names of the `count` replicas that go first, or of all if there are fewer, in the order of
// departure.
std::vector<std::string> ChooseForScaleDown(std::vector<Replica> replicas,
                                            const std::vector<std::string>& let_go_first,
                                            int count);

}  // namespace muster::actuator
