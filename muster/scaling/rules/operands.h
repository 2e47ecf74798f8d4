// Operands: the values of a target's operands, from what is observed of it.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "muster/scaling/policy/observation.h"
#include "muster/scaling/rules/metric_window.h"
#include "muster/scaling/rules/rules.h"

namespace muster::scaling::rules {

// Bounded: one window for each operand. Not thread-safe.
class Operands {
 public:
  // Those of `target` from now on. An operand that is as it was keeps what it has measured.
  void Use(const Rules& rules, absl::string_view target);

  // Time steps back: forgets what was measured.
  void StepBack();

  // Takes in what `observation` says. Of the estimates there is nothing to measure while no replica
  // is ready.
  void Observe(const scaling::policy::Observation& observation);

  // nullopt: there is none of this name, or data lack (MetricWindow::Value).
  std::optional<double> Value(absl::string_view name, absl::Time now) const;

 private:
  struct Measured {
    Operand operand;
    MetricWindow window;
  };
  std::map<std::string, Measured> operands_;  // by name
};

}  // namespace muster::scaling::rules
