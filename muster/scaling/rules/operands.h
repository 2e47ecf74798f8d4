// SPDX-License-Identifier: Apache-2.0

// Operands: the values that conditions compare. MetricWindow: one metric over a window of time,
// aggregated to one number.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/scaling/policy/policy.h"
#include "muster/scaling/rules/rules.h"

namespace muster::scaling::rules {

// Holds at most kMetricBuckets + 2 numbers and their sums, however many samples come. The window's
// old end is therefore inexact by 1/64 of the window. Not thread-safe.
class MetricWindow {
 public:
  // `over` is ignored for kLast.
  MetricWindow(Aggregate aggregate, absl::Duration over);

  // Adds a value measured at `at`. Drops a value that is not later than the newest one, or that is
  // not finite.
  void Add(absl::Time at, double value);

  // The aggregate over the window that ends at `now`. nullopt if data are missing: no value for
  // kStaleAfter (or within the window, if that is shorter); for a growth also if the values span
  // less than half of the window.
  std::optional<double> Value(absl::Time now) const;

  bool empty() const { return buckets_.empty(); }

 private:
  // The sums of neighbouring samples.
  struct Bucket {
    absl::Time first;
    absl::Time last;
    double count = 0;
    double sum = 0;
    double min = 0;
    double max = 0;
    double newest = 0;
    double seconds = 0;  // sum of the times since `first`

    double mean() const { return sum / count; }
    absl::Time middle() const { return first + absl::Seconds(seconds / count); }
  };

  // The growth per minute.
  std::optional<double> Growth(absl::Time since) const;

  Aggregate aggregate_;
  absl::Duration over_;
  std::deque<Bucket> buckets_;  // oldest first
};

// Operands: computes the values of a target's operands from its observations.

// Bounded: one window for each operand. Not thread-safe.
class Operands {
 public:
  // Switches to the operands of `target` in `rules`. An unchanged operand keeps its measurements.
  void Use(const Rules& rules, absl::string_view target);

  // Forgets all measurements. Call it when time steps back.
  void StepBack();

  // Adds the values of `observation`. Skips the estimates while no replica is ready, because
  // nothing was measured then.
  void Observe(const scaling::policy::Observation& observation);

  // nullopt: no operand has this name, or data are missing (see MetricWindow::Value).
  std::optional<double> Value(absl::string_view name, absl::Time now) const;

 private:
  struct Measured {
    Operand operand;
    MetricWindow window;
  };
  std::map<std::string, Measured> operands_;  // by name
};

}  // namespace muster::scaling::rules
