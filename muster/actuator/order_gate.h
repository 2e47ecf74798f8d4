// OrderGate: lets the orders in that an actuator may carry out.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "muster/actuator/actuator.h"
#include "muster/base/mutex.h"

namespace muster::actuator {

// Thread-safe.
class OrderGate {
 public:
  // InvalidArgument: it asks for fewer than none. FailedPrecondition: its fencing token is lower
  // than one that was let in before, for whichever target.
  absl::Status Admit(const Order& order);

 private:
  base::Mutex mu_;
  int64_t highest_ ABSL_GUARDED_BY(mu_) = 0;
};

// What Admit says of a token that is lower than `known`.
absl::Status StaleToken(const Order& order, int64_t known);

}  // namespace muster::actuator
