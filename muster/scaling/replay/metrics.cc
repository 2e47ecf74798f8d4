#include "muster/scaling/replay/metrics.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "muster/base/fingerprint.h"

namespace muster::scaling::replay {
namespace {

double Ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

}  // namespace

double Metrics::violation_ratio() const {
  return Ratio(static_cast<double>(violations), static_cast<double>(items));
}

double Metrics::cost_over_work() const { return Ratio(replica_seconds, work_seconds); }

double Metrics::idle_share() const {
  return std::max(0.0, Ratio(ready_seconds - work_seconds, ready_seconds));
}

void Metrics::Merge(const Metrics& other) {
  items += other.items;
  violations += other.violations;
  latencies.Merge(other.latencies);
  replica_seconds += other.replica_seconds;
  ready_seconds += other.ready_seconds;
  work_seconds += other.work_seconds;
  actions += other.actions;
  decision_hash = base::Fingerprint(absl::StrCat(decision_hash, other.decision_hash)).ToHex();
}

}  // namespace muster::scaling::replay
