#include "muster/scaling/actuator/order_gate.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace muster::scaling::actuator {

absl::Status OrderGate::Admit(const Order& order) {
  if (order.replicas < 0 || order.tasks < 0) {
    return absl::InvalidArgumentError(absl::StrCat("target '", order.target, "' cannot have ",
                                                   order.replicas, " replicas of ", order.tasks,
                                                   " tasks"));
  }
  if (clock_->Monotonic() >= order.not_after) {
    return absl::AbortedError(absl::StrCat("decision '", order.decision, "' for target '",
                                           order.target,
                                           "' comes too late: ", "the lead may have run out"));
  }
  base::MutexLock lock(&mu_);
  if (order.fencing_token < highest_) return StaleToken(order, highest_);
  highest_ = std::max(highest_, order.fencing_token);
  return absl::OkStatus();
}

absl::Status StaleToken(const Order& order, int64_t known) {
  return absl::FailedPreconditionError(absl::StrCat("decision '", order.decision, "' for target '",
                                                    order.target,
                                                    "' comes from an agent that no "
                                                    "longer leads: its fencing token ",
                                                    order.fencing_token, " is lower than ", known));
}

}  // namespace muster::scaling::actuator
