// SPDX-License-Identifier: Apache-2.0

// Family: the cells of one metric, by label values. Only for the registry: the one place, with
// registry.cc and open_metrics.cc, where muster meets the types of prometheus-cpp.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "muster/base/mutex.h"
#include "muster/telemetry/metric.h"
#include "muster/telemetry/registry.h"
#include "prometheus/counter.h"
#include "prometheus/gauge.h"
#include "prometheus/metric_family.h"

namespace muster::telemetry {

// What a metric can take: a finite number, and for a counter none below zero. One NaN would spoil a
// sum for ever.
bool IsRecordable(Kind kind, double value);

struct CounterCell {
  Family* const family;  // not owned
  prometheus::Counter value = {};
};

struct GaugeCell {
  Family* const family;  // not owned
  prometheus::Gauge value = {};
};

// An exemplar with the value that it stands for.
struct SeenExemplar {
  Exemplar exemplar;
  double value = 0;
};

// In place of prometheus::Histogram, whose Observe takes a lock that all workers share.
struct HistogramCell {
  HistogramCell(Family* owner, absl::Span<const double> upper_bounds);

  // Waits for no other thread.
  void Observe(double value, const Exemplar& exemplar);
  // The count of this is that of its buckets; its sum may be a moment older.
  prometheus::ClientMetric Collect() const;
  // The latest of each bucket; empty: there is none.
  std::vector<SeenExemplar> Exemplars();

  Family* const family;                       // not owned
  const absl::Span<const double> bounds;      // of the metric, a constant
  std::vector<std::atomic<uint64_t>> counts;  // of each bucket alone
  std::atomic<double> sum = 0;

  // A recorder only tries this lock, which base::Mutex cannot; it guards both that follow.
  std::mutex exemplar_mu;
  std::vector<SeenExemplar> exemplars;  // of each bucket
  bool has_exemplars = false;
};

using LabelValues = std::vector<std::string>;

// A metric with its present values.
struct CollectedFamily {
  Metric metric;
  prometheus::MetricFamily values;
  // Of a histogram: by its label values, of each bucket.
  std::map<LabelValues, std::vector<SeenExemplar>> exemplars;
};

// What two values of one label set become.
double Folded(Fold fold, double a, double b);

// Bounds the label sets of one metric (kMaxLabelSets). Not thread-safe.
class CardinalityLimit {
 public:
  // Takes the label set, with printable values of bounded length; "other" in place of what is too
  // much, and then true.
  bool Apply(LabelValues* values);

 private:
  absl::flat_hash_set<std::string> open_values_;  // of the first label
  absl::flat_hash_set<std::string> sets_;         // all that were taken, joined
};

// Thread-safe. Cells stay until the family is destroyed.
class Family {
 public:
  // `over_limit` counts what goes to "other", `refused` what is not recorded.
  Family(const Metric& metric, Counter over_limit, const Counters<1>& refused);

  const Metric& metric() const { return metric_; }

  // Whether the metric can take it; else counts it as refused.
  bool Takes(double value) const;

  // `values` are as many as the metric's labels; the kind must be the metric's.
  Counter CounterFor(absl::Span<const absl::string_view> values) ABSL_LOCKS_EXCLUDED(mu_);
  Gauge GaugeFor(absl::Span<const absl::string_view> values) ABSL_LOCKS_EXCLUDED(mu_);
  Histogram HistogramFor(absl::Span<const absl::string_view> values) ABSL_LOCKS_EXCLUDED(mu_);

  // The present values of all cells, and of what was `read` for this scrape; both in order of
  // labels.
  CollectedFamily Collect(const std::map<LabelValues, double>& read) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Series {
    LabelValues values;
    std::unique_ptr<CounterCell> counter;  // the one that is of the metric's kind
    std::unique_ptr<GaugeCell> gauge;
    std::unique_ptr<HistogramCell> histogram;
  };

  Series* SeriesFor(absl::Span<const absl::string_view> values) ABSL_LOCKS_EXCLUDED(mu_);
  Series* MakeLocked(LabelValues values) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // A label set for each cell and for what was read, with its present value.
  std::map<LabelValues, prometheus::ClientMetric> Present(const std::map<LabelValues, double>& read)
      ABSL_LOCKS_EXCLUDED(mu_);
  prometheus::ClientMetric ValueOf(const Series& series) const;
  // Of a histogram, those series that have any.
  std::map<LabelValues, std::vector<SeenExemplar>> Exemplars() ABSL_LOCKS_EXCLUDED(mu_);

  const Metric metric_;
  const Counter over_limit_;
  const Counters<1> refused_;
  base::Mutex mu_;
  CardinalityLimit limit_ ABSL_GUARDED_BY(mu_);
  // By the values that callers have named, joined; several may share the series of "other".
  absl::flat_hash_map<std::string, Series*> by_values_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<std::string, Series*> by_label_set_ ABSL_GUARDED_BY(mu_);
  std::deque<Series> series_ ABSL_GUARDED_BY(mu_);  // its elements stay in place
};

}  // namespace muster::telemetry
