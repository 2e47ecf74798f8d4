// SPDX-License-Identifier: Apache-2.0
#include "muster/telemetry/open_metrics.h"

#include <cmath>
#include <cstddef>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"

namespace muster::telemetry {
namespace {

using Labels = std::vector<prometheus::ClientMetric::Label>;

std::string Escaped(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}});
}

std::string NumberOf(double value) {
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  if (std::isnan(value)) return "NaN";
  return absl::StrFormat("%.17g", value);
}

// A bound as clients of the format compare it: "1.0", and 0.1 without the digits behind it.
std::string BoundOf(double bound) {
  if (std::isinf(bound)) return "+Inf";
  std::string text = absl::StrCat(bound);
  if (!absl::StrContains(text, '.') && !absl::StrContains(text, 'e')) text += ".0";
  return text;
}

// {queue="retail-in",le="1.0"}; nothing if there is no label.
std::string LabelsOf(const Labels& labels, absl::string_view bound = "") {
  std::string text;
  for (const prometheus::ClientMetric::Label& label : labels) {
    absl::StrAppend(&text, text.empty() ? "{" : ",", label.name, "=\"", Escaped(label.value), "\"");
  }
  if (!bound.empty()) absl::StrAppend(&text, text.empty() ? "{" : ",", "le=\"", bound, "\"");
  return text.empty() ? text : text + "}";
}

std::string ExemplarOf(const SeenExemplar& seen) {
  const Exemplar& exemplar = seen.exemplar;
  if (!exemplar.exists()) return "";
  return absl::StrFormat(" # {trace_id=\"%016x%016x\",span_id=\"%016x\"} %s", exemplar.trace_high,
                         exemplar.trace_low, exemplar.span, NumberOf(seen.value));
}

void AppendHistogram(const CollectedFamily& family, const prometheus::ClientMetric& metric,
                     std::string* text) {
  const std::string& name = family.values.name;
  LabelValues values;
  for (const auto& label : metric.label) values.push_back(label.value);
  const auto exemplars = family.exemplars.find(values);
  for (size_t i = 0; i < metric.histogram.bucket.size(); ++i) {
    const prometheus::ClientMetric::Bucket& bucket = metric.histogram.bucket[i];
    const bool has_exemplar = exemplars != family.exemplars.end();
    absl::StrAppend(text, name, "_bucket", LabelsOf(metric.label, BoundOf(bucket.upper_bound)), " ",
                    bucket.cumulative_count, has_exemplar ? ExemplarOf(exemplars->second[i]) : "",
                    "\n");
  }
  absl::StrAppend(text, name, "_sum", LabelsOf(metric.label), " ",
                  NumberOf(metric.histogram.sample_sum), "\n", name, "_count",
                  LabelsOf(metric.label), " ", metric.histogram.sample_count, "\n");
}

void AppendMetric(const CollectedFamily& family, const prometheus::ClientMetric& metric,
                  std::string* text) {
  if (family.metric.kind == Kind::kHistogram) return AppendHistogram(family, metric, text);
  const double value =
      family.metric.kind == Kind::kCounter ? metric.counter.value : metric.gauge.value;
  absl::StrAppend(text, family.values.name, LabelsOf(metric.label), " ", NumberOf(value), "\n");
}

}  // namespace

std::string OpenMetricsText(const std::vector<CollectedFamily>& families) {
  std::string text;
  for (const CollectedFamily& family : families) {
    // The format names a counter without the "_total" of its samples.
    const absl::string_view name = absl::StripSuffix(family.values.name, "_total");
    absl::StrAppend(&text, "# TYPE ", name, " ", KindName(family.metric.kind), "\n# HELP ", name,
                    " ", Escaped(family.values.help), "\n");
    for (const prometheus::ClientMetric& metric : family.values.metric) {
      AppendMetric(family, metric, &text);
    }
  }
  return text + "# EOF\n";
}

}  // namespace muster::telemetry
