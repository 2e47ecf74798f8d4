#include "muster/scaling/policy/decision.h"

namespace muster::scaling::policy {

std::string_view BindingName(Binding binding) {
  switch (binding) {
    case Binding::kNothing:
      return "nothing";
    case Binding::kDeadline:
      return "deadline";
    case Binding::kLateStart:
      return "late-start";
    case Binding::kRate:
      return "rate";
    case Binding::kMin:
      return "min";
    case Binding::kMax:
      return "max";
    case Binding::kHold:
      return "hold";
    case Binding::kForecast:
      return "forecast";
    case Binding::kIdle:
      return "idle";
    case Binding::kThreads:
      return "threads";
    case Binding::kThrottled:
      return "throttled";
    case Binding::kNoMetrics:
      return "no-metrics";
    case Binding::kReaction:
      return "reaction";
    case Binding::kStabilizer:
      return "stabilizer";
    case Binding::kOverride:
      return "override";
    case Binding::kPolicy:
      return "policy";
  }
  return "unknown";
}

}  // namespace muster::scaling::policy
