// OrderGate: lets the orders in that an actuator may carry out.
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
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/scaling/actuator/actuator.h"

namespace muster::scaling::actuator {

// Thread-safe.
class OrderGate {
 public:
  // `clock` is not owned.
  explicit OrderGate(const base::Clock* clock) : clock_(clock) {}

  // InvalidArgument: it asks for fewer than none. Aborted: its moment has passed; so ask again
  // after each wait. FailedPrecondition: its fencing token is lower than one that was let in
  // before, for whichever target.
  absl::Status Admit(const Order& order);

 private:
  const base::Clock* const clock_;  // not owned
  base::Mutex mu_;
  int64_t highest_ ABSL_GUARDED_BY(mu_) = 0;
};

// What Admit says of a token that is lower than `known`.
absl::Status StaleToken(const Order& order, int64_t known);

// ScaleDownOrder: who goes first when a target shrinks, where the actuator has the choice.

// Those first that the order names, as it names them; then those that are not ready, then the ready
// ones, each time the newest first, and of equals by name.
class ScaleDownOrder {
 public:
  using Rank = std::tuple<size_t, bool, absl::Duration, absl::string_view>;

  // `let_go_first` outlives it.
  explicit ScaleDownOrder(const std::vector<std::string>& let_go_first);

  // Who has the lower one goes first. Holds `name`.
  Rank RankOf(absl::string_view name, ReplicaState state, absl::Time started) const;

 private:
  std::map<absl::string_view, size_t> wishes_;
};

// Which replicas go when a target shrinks.

// The names of `count` of `replicas`, or of all if there are fewer, by the order of departure.
std::vector<std::string> ChooseForScaleDown(std::vector<Replica> replicas,
                                            const std::vector<std::string>& let_go_first,
                                            int count);

}  // namespace muster::scaling::actuator
