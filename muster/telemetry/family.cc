// SPDX-License-Identifier: Apache-2.0
#include "muster/telemetry/family.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_join.h"
#include "muster/base/check.h"
#include "muster/base/text.h"

namespace muster::telemetry {
namespace {

// No label value has a NUL that means anything.
template <typename Values>
std::string Join(const Values& values) {
  return absl::StrJoin(values, absl::string_view("\0", 1));
}

prometheus::MetricType TypeOf(Kind kind) {
  switch (kind) {
    case Kind::kCounter:
      return prometheus::MetricType::Counter;
    case Kind::kHistogram:
      return prometheus::MetricType::Histogram;
    case Kind::kGauge:
      break;
  }
  return prometheus::MetricType::Gauge;
}

}  // namespace

double Folded(Fold fold, double a, double b) {
  switch (fold) {
    case Fold::kMax:
      return std::max(a, b);
    case Fold::kMin:
      return std::min(a, b);
    case Fold::kSum:
      break;
  }
  return a + b;
}

bool IsRecordable(Kind kind, double value) {
  return std::isfinite(value) && (kind != Kind::kCounter || value >= 0);
}

void Counter::Add(double by) const {
  if (cell_ != nullptr && cell_->family->Takes(by)) cell_->value.Increment(by);
}

void Gauge::Set(double value) const {
  if (cell_ != nullptr && cell_->family->Takes(value)) cell_->value.Set(value);
}

void Gauge::Add(double by) const {
  if (cell_ != nullptr && cell_->family->Takes(by)) cell_->value.Increment(by);
}

void Histogram::Observe(double value, const Exemplar& exemplar) const {
  if (cell_ == nullptr || !cell_->family->Takes(value)) return;
  cell_->Observe(value, exemplar);
}

HistogramCell::HistogramCell(Family* owner, absl::Span<const double> upper_bounds)
    : family(owner), bounds(upper_bounds), counts(bounds.size() + 1), exemplars(counts.size()) {}

void HistogramCell::Observe(double value, const Exemplar& exemplar) {
  const auto bucket =
      static_cast<size_t>(std::lower_bound(bounds.begin(), bounds.end(), value) - bounds.begin());
  counts[bucket].fetch_add(1, std::memory_order_relaxed);
  sum.fetch_add(value, std::memory_order_relaxed);
  if (!exemplar.exists()) return;
  const std::unique_lock<std::mutex> lock(exemplar_mu, std::try_to_lock);
  if (!lock.owns_lock()) return;  // any late one will do
  exemplars[bucket] = {exemplar, value};
  has_exemplars = true;
}

prometheus::ClientMetric HistogramCell::Collect() const {
  prometheus::ClientMetric metric;
  metric.histogram.sample_sum = sum.load(std::memory_order_relaxed);
  uint64_t below = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    below += counts[i].load(std::memory_order_relaxed);
    const bool is_last = i == bounds.size();
    metric.histogram.bucket.push_back(
        {below, is_last ? std::numeric_limits<double>::infinity() : bounds[i]});
  }
  metric.histogram.sample_count = below;
  return metric;
}

std::vector<SeenExemplar> HistogramCell::Exemplars() {
  const std::lock_guard<std::mutex> lock(exemplar_mu);
  return has_exemplars ? exemplars : std::vector<SeenExemplar>();
}

bool CardinalityLimit::Apply(LabelValues* values) {
  if (values->empty()) return false;
  for (std::string& value : *values) value = base::Printable(value, kMaxLabelBytes);
  std::string& open = values->front();
  bool is_over = false;
  if (open != kOther && !open_values_.contains(open)) {
    is_over = sets_.size() >= (values->size() == 1 ? kMaxValues : kMaxSetsForNewValue);
    if (is_over) {
      open = kOther;
    } else {
      open_values_.insert(open);
    }
  }
  std::string set = Join(*values);
  if (sets_.size() >= kMaxLabelSets - 1 && !sets_.contains(set)) {
    std::fill(values->begin(), values->end(), kOther);
    set = Join(*values);
    is_over = true;
  }
  sets_.insert(std::move(set));
  return is_over;
}

Family::Family(const Metric& metric, Counter over_limit, const Counters<1>& refused)
    : metric_(metric), over_limit_(over_limit), refused_(refused) {}

bool Family::Takes(double value) const {
  const bool takes = IsRecordable(metric_.kind, value);
  if (!takes) refused_.With({metric_.name}).Add();
  return takes;
}

Counter Family::CounterFor(absl::Span<const absl::string_view> values) {
  MUSTER_CHECK(metric_.kind == Kind::kCounter, metric_.name, " is no counter");
  return Counter(SeriesFor(values)->counter.get());
}

Gauge Family::GaugeFor(absl::Span<const absl::string_view> values) {
  MUSTER_CHECK(metric_.kind == Kind::kGauge, metric_.name, " is no gauge");
  return Gauge(SeriesFor(values)->gauge.get());
}

Histogram Family::HistogramFor(absl::Span<const absl::string_view> values) {
  MUSTER_CHECK(metric_.kind == Kind::kHistogram, metric_.name, " is no histogram");
  return Histogram(SeriesFor(values)->histogram.get());
}

Family::Series* Family::SeriesFor(absl::Span<const absl::string_view> values) {
  MUSTER_CHECK(values.size() == metric_.labels.size(), metric_.name, " has ", metric_.labels.size(),
               " labels, not ", values.size());
  const std::string key = Join(values);
  base::MutexLock lock(&mu_);
  if (const auto known = by_values_.find(key); known != by_values_.end()) return known->second;
  LabelValues labels(values.begin(), values.end());
  const bool is_over = limit_.Apply(&labels);
  const auto shared = by_label_set_.find(Join(labels));
  Series* const series = shared != by_label_set_.end() ? shared->second : MakeLocked(labels);
  if (is_over) {
    over_limit_.Add();  // what is over the limit is not remembered, either
  } else {
    by_values_.emplace(key, series);
  }
  return series;
}

Family::Series* Family::MakeLocked(LabelValues values) {
  Series& series = series_.emplace_back();
  by_label_set_.emplace(Join(values), &series);
  series.values = std::move(values);
  if (metric_.kind == Kind::kCounter) {
    series.counter.reset(new CounterCell{this});
  }
  if (metric_.kind == Kind::kGauge) series.gauge.reset(new GaugeCell{this});
  if (metric_.kind == Kind::kHistogram) {
    series.histogram = std::make_unique<HistogramCell>(this, metric_.buckets);
  }
  return &series;
}

prometheus::ClientMetric Family::ValueOf(const Series& series) const {
  if (series.counter != nullptr) return series.counter->value.Collect();
  if (series.gauge != nullptr) return series.gauge->value.Collect();
  return series.histogram->Collect();
}

std::map<LabelValues, prometheus::ClientMetric> Family::Present(
    const std::map<LabelValues, double>& read) {
  std::vector<const Series*> all;
  CardinalityLimit limit;
  {
    // Only pointers are copied under the lock, so that no With() waits for long, and of a metric
    // that is read the limit, which knows what is recorded, too.
    base::MutexLock lock(&mu_);
    all.reserve(series_.size());
    for (const Series& series : series_) all.push_back(&series);
    if (!read.empty()) limit = limit_;
  }
  std::map<LabelValues, prometheus::ClientMetric> present;
  for (const Series* const series : all) present[series->values] = ValueOf(*series);
  for (const auto& [values, value] : read) {
    LabelValues labels = values;
    if (limit.Apply(&labels)) over_limit_.Add();
    const auto [place, is_new] = present.try_emplace(std::move(labels));
    double& at =
        metric_.kind == Kind::kCounter ? place->second.counter.value : place->second.gauge.value;
    at = is_new ? value : Folded(metric_.fold, at, value);
  }
  return present;
}

std::map<LabelValues, std::vector<SeenExemplar>> Family::Exemplars() {
  std::map<LabelValues, std::vector<SeenExemplar>> exemplars;
  if (metric_.kind != Kind::kHistogram) return exemplars;
  std::vector<const Series*> all;
  {
    base::MutexLock lock(&mu_);  // for pointers alone, as in Present
    for (const Series& series : series_) all.push_back(&series);
  }
  for (const Series* const series : all) {
    std::vector<SeenExemplar> seen = series->histogram->Exemplars();
    if (!seen.empty()) exemplars.emplace(series->values, std::move(seen));
  }
  return exemplars;
}

CollectedFamily Family::Collect(const std::map<LabelValues, double>& read) {
  CollectedFamily collected;
  collected.metric = metric_;
  collected.exemplars = Exemplars();
  prometheus::MetricFamily& family = collected.values;
  family.name = std::string(metric_.name);
  family.help = std::string(metric_.help);
  family.type = TypeOf(metric_.kind);
  for (auto& [values, value] : Present(read)) {
    for (size_t i = 0; i < values.size(); ++i) {
      value.label.push_back({std::string(metric_.labels[i]), values[i]});
    }
    family.metric.push_back(std::move(value));
  }
  return collected;
}

}  // namespace muster::telemetry
