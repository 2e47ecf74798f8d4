// MetricWindow: what a metric was over the last while, as one number.
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
// far end is therefore fuzzy by 1/64 of it. Not thread-safe.
class MetricWindow {
 public:
  // `over` is ignored for kLast.
  MetricWindow(Aggregate aggregate, absl::Duration over);

  // A value that was measured at `at`. One that is older than the newest, or was measured at the
  // same instant, is dropped; so is what is no finite number.
  void Add(absl::Time at, double value);

  // The aggregate over the window that ends now. nullopt when data lack: nothing was measured for
  // kStaleAfter (or within the window, if that is shorter); for a growth also when what was
  // measured spans less than half of the window.
  std::optional<double> Value(absl::Time now) const;

  bool empty() const { return buckets_.empty(); }

 private:
  // Neighbouring samples, together.
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

  // Minutes are the unit of time.
  std::optional<double> Growth(absl::Time since) const;

  Aggregate aggregate_;
  absl::Duration over_;
  std::deque<Bucket> buckets_;  // oldest first
};

// Operands: the values of a target's operands, from what is observed of it.

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
