// SPDX-License-Identifier: Apache-2.0

// Registry: the metrics of one process. A part that measures makes its families from the registry
// that it is given, and records through handles:
//
//   const telemetry::Counters<2> items_;                   // items_(registry, telemetry::kItems)
//   items_.With({queue, "aggregated"}).Add();
//
// What a part knows anyway, it has read at the time of a scrape instead, so that nothing is
// recorded between scrapes:
//
//   reading_ = telemetry::ReadAtScrape(registry, "queues", {telemetry::kQueueBacklog.entry()},
//                                      [this](telemetry::Samples* samples) { … });
//
//   record ─► handle ─► cell (atomic) ─┐
//                                      ├─► Scrape ─► text
//   what a part knows ◄─ read at scrape┘
//
// A null registry is fine everywhere: what is recorded goes nowhere, and costs a comparison.
//
// Cardinality is bounded: a metric has kMaxLabelSets label sets at most. A value of the first label
// that comes too late shares the value "other" with all such, and kOverLimit counts it. The other
// labels stay, so that sums by outcome are right over all queues; nothing is lost from a sum.
//
// Values that no metric can take (NaN, infinite, below zero for a counter) change nothing, and
// kRefusedValues counts them.
//
// telemetry/otlp pushes the same to a collector (TakeSnapshot), and spans beside it (span.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "muster/base/mutex.h"
#include "muster/telemetry/metric.h"
#include "muster/telemetry/snapshot.h"

namespace muster::telemetry {

// Label sets of one metric, "other" included: more queues than a person looks at, and a page of a
// few megabytes at most. The OpenTelemetry library loses counts of a metric with 2,000.
inline constexpr size_t kMaxLabelSets = 500;
// Values of the only label of a metric: one set is for "other".
inline constexpr size_t kMaxValues = kMaxLabelSets - 1;
// Where a metric has more labels, its first one takes no new value from so many sets on. So a queue
// that is shown has room for its further outcomes, and is not half in "other".
inline constexpr size_t kMaxSetsForNewValue = kMaxLabelSets / 2;
// A longer label value is cut.
inline constexpr size_t kMaxLabelBytes = 128;
// The label value of everything beyond the bounds.
inline constexpr char kOther[] = "other";

enum class TextFormat {
  kPrometheus,   // version 0.0.4
  kOpenMetrics,  // version 1.0.0, with exemplars
};

// A sampled span, by which a tracing system finds it; no trace: there is none.
struct Exemplar {
  uint64_t trace_high = 0;
  uint64_t trace_low = 0;
  uint64_t span = 0;

  bool exists() const { return trace_high != 0 || trace_low != 0; }
};

class Family;
class Registry;
struct CollectedFamily;
struct CounterCell;
struct GaugeCell;
struct HistogramCell;

// Handles. Copyable and thread-safe. To record is an atomic addition, for a histogram two of them:
// no lock is taken, and nothing waits for other recorders or a scrape. So a scrape may see a
// histogram's bucket a moment before its sum. A handle that is made by default records nothing.
// They are valid as long as their registry.

class Counter {
 public:
  Counter() = default;
  // `by`: at least 0.
  void Add(double by = 1) const;
  void AddSeconds(absl::Duration by) const { Add(absl::ToDoubleSeconds(by)); }

 private:
  friend class Family;
  explicit Counter(CounterCell* cell) : cell_(cell) {}
  CounterCell* cell_ = nullptr;  // not owned
};

class Gauge {
 public:
  Gauge() = default;
  void Set(double value) const;
  void Add(double by) const;  // may be negative

 private:
  friend class Family;
  explicit Gauge(GaugeCell* cell) : cell_(cell) {}
  GaugeCell* cell_ = nullptr;  // not owned
};

class Histogram {
 public:
  Histogram() = default;
  // `exemplar`: a span for which the value was seen; scrapes in the OpenMetrics format show the
  // latest one of each bucket. One that comes while another thread is at the exemplars is dropped.
  void Observe(double value, const Exemplar& exemplar = {}) const;
  void Observe(absl::Duration time, const Exemplar& exemplar = {}) const {
    Observe(absl::ToDoubleSeconds(time), exemplar);
  }
  // Whether observed values are kept: else the caller need not read a clock.
  bool records() const { return cell_ != nullptr; }

 private:
  friend class Family;
  explicit Histogram(HistogramCell* cell) : cell_(cell) {}
  HistogramCell* cell_ = nullptr;  // not owned
};

// The family of `metric`; null if `registry` is null. The metric must be in the catalogue.
Family* FamilyOf(Registry* registry, const Metric& metric);
Counter CounterOf(Family* family, absl::Span<const absl::string_view> values);
Gauge GaugeOf(Family* family, absl::Span<const absl::string_view> values);
Histogram HistogramOf(Family* family, absl::Span<const absl::string_view> values);

// The handles of one metric, by label values. Copyable and thread-safe. With() takes a short lock;
// keep its handle where it is used often. `registry` outlives the family.

template <size_t kLabels>
class Counters {
 public:
  Counters() = default;
  Counters(Registry* registry, const CounterMetric<kLabels>& metric)
      : family_(FamilyOf(registry, metric.entry())) {}
  Counter With(const std::array<absl::string_view, kLabels>& values) const {
    return CounterOf(family_, values);
  }

 private:
  Family* family_ = nullptr;  // not owned
};

template <size_t kLabels>
class Gauges {
 public:
  Gauges() = default;
  Gauges(Registry* registry, const GaugeMetric<kLabels>& metric)
      : family_(FamilyOf(registry, metric.entry())) {}
  Gauge With(const std::array<absl::string_view, kLabels>& values) const {
    return GaugeOf(family_, values);
  }

 private:
  Family* family_ = nullptr;  // not owned
};

template <size_t kLabels>
class Histograms {
 public:
  Histograms() = default;
  Histograms(Registry* registry, const HistogramMetric<kLabels>& metric)
      : family_(FamilyOf(registry, metric.entry())) {}
  Histogram With(const std::array<absl::string_view, kLabels>& values) const {
    return HistogramOf(family_, values);
  }

 private:
  Family* family_ = nullptr;  // not owned
};

// What a reader sees at the time of one scrape. Samples of one label set are folded as their metric
// says. Not thread-safe.
class Samples {
 public:
  template <size_t kLabels>
  void Set(const GaugeMetric<kLabels>& metric, const std::array<absl::string_view, kLabels>& values,
           double value) {
    Add(metric.name, values, value);
  }
  // A total that another part counts, since the start of the process.
  template <size_t kLabels>
  void Set(const CounterMetric<kLabels>& metric,
           const std::array<absl::string_view, kLabels>& values, double value) {
    Add(metric.name, values, value);
  }

 private:
  friend class Registry;
  using Labels = std::vector<std::string>;
  void Add(absl::string_view name, absl::Span<const absl::string_view> values, double value);

  Registry* registry_ = nullptr;  // not owned
  std::map<std::string, std::map<Labels, double>> by_metric_;
};

// Sets what it knows; an error says that it knows less than usual now, and kReadFailures counts it.
// It may ask a store, but must not wait for long: the scrape waits for it.
using Reader = std::function<absl::Status(Samples*)>;

// Ends the reading when it is destroyed: when the destructor returns, the reader does not run, and
// never runs again.
class Reading {
 public:
  ~Reading();
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

 private:
  friend class Registry;
  struct Source;
  explicit Reading(std::shared_ptr<Source> source) : source_(std::move(source)) {}
  const std::shared_ptr<Source> source_;  // shared with a scrape that runs
};

// Has `read` called with each scrape, for `metrics`, which must be in the catalogue; one call at a
// time. `source` names it in kReadFailures. Null if `registry` is null, which outlives the reading.
[[nodiscard]] std::unique_ptr<Reading> ReadAtScrape(Registry* registry, absl::string_view source,
                                                    const std::vector<Metric>& metrics,
                                                    Reader read);

// Thread-safe.
class Registry {
 public:
  Registry();
  ~Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  // All metrics, in order of their names.
  std::string Scrape(TextFormat format = TextFormat::kPrometheus) ABSL_LOCKS_EXCLUDED(mu_);
  // The same as values. A metric without a series is left out.
  Snapshot TakeSnapshot() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  friend class Samples;
  friend Family* FamilyOf(Registry* registry, const Metric& metric);
  friend std::unique_ptr<Reading> ReadAtScrape(Registry*, absl::string_view,
                                               const std::vector<Metric>&, Reader);

  Family* Find(const Metric& metric) ABSL_LOCKS_EXCLUDED(mu_);
  // Null: there is no family of this name yet.
  Family* Known(absl::string_view name) ABSL_LOCKS_EXCLUDED(mu_);
  std::unique_ptr<Reading> Read(absl::string_view source, const std::vector<Metric>& metrics,
                                Reader read) ABSL_LOCKS_EXCLUDED(mu_);
  Samples ReadAll() ABSL_LOCKS_EXCLUDED(mu_);
  // All families with their present values, in order of their names.
  std::vector<CollectedFamily> Collect() ABSL_LOCKS_EXCLUDED(mu_);

  base::Mutex mu_;
  std::map<std::string, std::unique_ptr<Family>> families_ ABSL_GUARDED_BY(mu_);  // by name
  std::list<std::weak_ptr<Reading::Source>> sources_ ABSL_GUARDED_BY(mu_);
  Counters<1> over_limit_;      // set once, by the constructor
  Counters<1> refused_values_;  // likewise
  Counters<1> read_failures_;   // likewise
};

}  // namespace muster::telemetry
