// SPDX-License-Identifier: Apache-2.0
#include "muster/actuator/dry_run/dry_run_actuator.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/status.h"

namespace muster::actuator::dry_run {
namespace {

std::string WouldBe(const actuator::Order& order, int before) {
  std::string text =
      order.replicas == before
          ? absl::StrCat("dry run: would stay at ", before, " replicas")
          : absl::StrCat("dry run: would go from ", before, " to ", order.replicas, " replicas");
  if (order.tasks > 0) absl::StrAppend(&text, " of ", order.tasks, " tasks");
  if (order.replicas < before && !order.let_go_first.empty()) {
    absl::StrAppend(&text, ", letting go first ", absl::StrJoin(order.let_go_first, ", "));
  }
  return absl::StrCat(text, "; nothing was changed");
}

}  // namespace

DryRunActuator::DryRunActuator(actuator::Actuator* observed, const base::Clock* clock)
    : observed_(observed), gate_(clock) {}

DryRunActuator::DryRunActuator(Targets targets, const base::Clock* clock)
    : observed_(nullptr), targets_(std::move(targets)), gate_(clock) {}

absl::StatusOr<actuator::TargetState> DryRunActuator::Observe(std::string_view target) {
  if (observed_ != nullptr) return observed_->Observe(target);
  const auto found = targets_.find(target);
  if (found != targets_.end()) return found->second;
  return absl::NotFoundError(absl::StrCat("there is no target '", std::string(target), "'"));
}

absl::StatusOr<actuator::Outcome> DryRunActuator::Apply(const actuator::Order& order) {
  MUSTER_RETURN_IF_ERROR(gate_.Admit(order));
  MUSTER_ASSIGN_OR_RETURN(const actuator::TargetState state, Observe(order.target));
  return actuator::Outcome{state.wanted, order.replicas, WouldBe(order, state.wanted)};
}

}  // namespace muster::actuator::dry_run
