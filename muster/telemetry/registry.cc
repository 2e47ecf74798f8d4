// SPDX-License-Identifier: Apache-2.0
#include "muster/telemetry/registry.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "muster/base/check.h"
#include "muster/telemetry/catalogue.h"
#include "muster/telemetry/family.h"
#include "muster/telemetry/open_metrics.h"
#include "prometheus/text_serializer.h"

namespace muster::telemetry {

// Shared by its Reading and by scrapes that have begun.
struct Reading::Source {
  const std::string name;
  base::Mutex mu;  // held while the reader runs
  Reader read ABSL_GUARDED_BY(mu);
};

Reading::~Reading() {
  base::MutexLock lock(&source_->mu);
  source_->read = nullptr;
}

namespace {

Point PointOf(Kind kind, const prometheus::ClientMetric& value) {
  Point point;
  for (const prometheus::ClientMetric::Label& label : value.label) {
    point.labels.push_back(label.value);
  }
  switch (kind) {
    case Kind::kCounter:
      point.value = value.counter.value;
      break;
    case Kind::kGauge:
      point.value = value.gauge.value;
      break;
    case Kind::kHistogram:
      point.value = value.histogram.sample_sum;
      uint64_t below = 0;
      for (const prometheus::ClientMetric::Bucket& bucket : value.histogram.bucket) {
        point.counts.push_back(bucket.cumulative_count - below);
        below = bucket.cumulative_count;
      }
      break;
  }
  return point;
}

}  // namespace

Family* FamilyOf(Registry* registry, const Metric& metric) {
  return registry == nullptr ? nullptr : registry->Find(metric);
}

Counter CounterOf(Family* family, absl::Span<const absl::string_view> values) {
  return family == nullptr ? Counter() : family->CounterFor(values);
}

Gauge GaugeOf(Family* family, absl::Span<const absl::string_view> values) {
  return family == nullptr ? Gauge() : family->GaugeFor(values);
}

Histogram HistogramOf(Family* family, absl::Span<const absl::string_view> values) {
  return family == nullptr ? Histogram() : family->HistogramFor(values);
}

void Samples::Add(absl::string_view name, absl::Span<const absl::string_view> values,
                  double value) {
  Labels labels(values.begin(), values.end());
  const Family* const family = registry_->Known(name);
  MUSTER_CHECK(family != nullptr, "a reader sets ", name, ", which it has not declared");
  if (!family->Takes(value)) return;
  std::map<Labels, double>& samples = by_metric_[std::string(name)];
  const auto [place, is_new] = samples.try_emplace(std::move(labels), value);
  if (!is_new) place->second = Folded(family->metric().fold, place->second, value);
}

std::unique_ptr<Reading> ReadAtScrape(Registry* registry, absl::string_view source,
                                      const std::vector<Metric>& metrics, Reader read) {
  return registry == nullptr ? nullptr : registry->Read(source, metrics, std::move(read));
}

std::unique_ptr<Reading> Registry::Read(absl::string_view source,
                                        const std::vector<Metric>& metrics, Reader read) {
  for (const Metric& metric : metrics) Find(metric);
  const std::shared_ptr<Reading::Source> made(
      new Reading::Source{std::string(source), {}, std::move(read)});
  base::MutexLock lock(&mu_);
  sources_.remove_if([](const auto& known) { return known.expired(); });
  sources_.push_back(made);
  return std::unique_ptr<Reading>(new Reading(made));
}

// The counters of what is over the limit and of what is refused come first: other families count
// with them.
Registry::Registry() {
  over_limit_ = Counters<1>(this, kOverLimit);
  refused_values_ = Counters<1>(this, kRefusedValues);
  read_failures_ = Counters<1>(this, kReadFailures);
}

Registry::~Registry() = default;

Family* Registry::Find(const Metric& metric) {
  if (Family* const known = Known(metric.name); known != nullptr) return known;
  const std::vector<Metric> catalogue = Catalogue();
  MUSTER_CHECK(std::any_of(catalogue.begin(), catalogue.end(),
                           [&](const Metric& entry) { return entry.name == metric.name; }),
               metric.name, " is not in the catalogue");
  // Before the lock is taken, which this takes, too. The family over_limit_ itself has a label
  // value for each other metric, and never too many.
  const Counter over_limit = over_limit_.With({metric.name});
  base::MutexLock lock(&mu_);
  std::unique_ptr<Family>& family = families_[std::string(metric.name)];
  if (family == nullptr) {
    family = std::make_unique<Family>(metric, over_limit, refused_values_);
  }
  return family.get();
}

Family* Registry::Known(absl::string_view name) {
  base::MutexLock lock(&mu_);
  const auto known = families_.find(std::string(name));
  return known == families_.end() ? nullptr : known->second.get();
}

Samples Registry::ReadAll() {
  std::vector<std::shared_ptr<Reading::Source>> sources;
  {
    base::MutexLock lock(&mu_);
    for (const auto& known : sources_) {
      if (auto source = known.lock(); source != nullptr) sources.push_back(std::move(source));
    }
  }
  Samples samples;
  samples.registry_ = this;
  for (const auto& source : sources) {
    base::MutexLock lock(&source->mu);
    if (!source->read) continue;
    if (!source->read(&samples).ok()) read_failures_.With({source->name}).Add();
  }
  return samples;
}

std::vector<CollectedFamily> Registry::Collect() {
  const Samples samples = ReadAll();
  std::vector<Family*> families;
  {
    base::MutexLock lock(&mu_);
    for (const auto& [name, family] : families_) families.push_back(family.get());
  }
  static const std::map<Samples::Labels, double> kNothing;
  std::vector<CollectedFamily> collected;
  for (Family* const family : families) {
    const auto read = samples.by_metric_.find(std::string(family->metric().name));
    collected.push_back(
        family->Collect(read == samples.by_metric_.end() ? kNothing : read->second));
  }
  return collected;
}

std::string Registry::Scrape(TextFormat format) {
  std::vector<CollectedFamily> families = Collect();
  if (format == TextFormat::kOpenMetrics) return OpenMetricsText(families);
  std::vector<prometheus::MetricFamily> values;
  for (CollectedFamily& family : families) values.push_back(std::move(family.values));
  std::ostringstream text;
  prometheus::TextSerializer().Serialize(text, values);
  return text.str();
}

Snapshot Registry::TakeSnapshot() {
  Snapshot snapshot;
  for (const CollectedFamily& family : Collect()) {
    if (family.values.metric.empty()) continue;
    MetricSnapshot& metric = snapshot.emplace_back();
    metric.metric = family.metric;
    for (const prometheus::ClientMetric& value : family.values.metric) {
      metric.points.push_back(PointOf(family.metric.kind, value));
    }
  }
  return snapshot;
}

}  // namespace muster::telemetry
