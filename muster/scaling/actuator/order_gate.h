// OrderGate: lets the orders in that an actuator may carry out.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
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

}  // namespace muster::scaling::actuator
