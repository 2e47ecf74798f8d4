// SPDX-License-Identifier: Apache-2.0
#include "muster/telemetry/otlp/records.h"

#include <array>
#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "muster/base/text.h"
#include "opentelemetry/common/attribute_value.h"
#include "opentelemetry/common/timestamp.h"
#include "opentelemetry/logs/severity.h"
#include "opentelemetry/trace/span_context.h"

namespace muster::telemetry {
namespace {

namespace otel = opentelemetry;

// Of the reason of an error; the log has all of it.
constexpr size_t kMaxWhyBytes = 1024;

otel::common::SystemTimestamp TimestampOf(absl::Time time) {
  return otel::common::SystemTimestamp(std::chrono::nanoseconds(absl::ToUnixNanos(time)));
}

void AppendBigEndian(uint64_t value, uint8_t* to) {
  for (int shift = 56; shift >= 0; shift -= 8) *to++ = static_cast<uint8_t>(value >> shift);
}

otel::trace::TraceId TraceIdOf(const base::TraceContext& trace) {
  constexpr size_t kSize = otel::trace::TraceId::kSize;
  std::array<uint8_t, kSize> bytes = {};
  AppendBigEndian(trace.trace_high, bytes.data());
  AppendBigEndian(trace.trace_low, bytes.data() + 8);
  return otel::trace::TraceId(otel::nostd::span<const uint8_t, kSize>(bytes.data(), kSize));
}

otel::trace::SpanId SpanIdOf(uint64_t id) {
  constexpr size_t kSize = otel::trace::SpanId::kSize;
  std::array<uint8_t, kSize> bytes = {};
  AppendBigEndian(id, bytes.data());
  return otel::trace::SpanId(otel::nostd::span<const uint8_t, kSize>(bytes.data(), kSize));
}

otel::trace::SpanContext ContextOf(const base::TraceContext& trace, uint64_t span) {
  return otel::trace::SpanContext(TraceIdOf(trace), SpanIdOf(span),
                                  otel::trace::TraceFlags(trace.flags), /*is_remote=*/false,
                                  otel::trace::TraceState::FromHeader(trace.state));
}

otel::trace::SpanKind KindOf(SpanKind kind) {
  switch (kind) {
    case SpanKind::kInternal:
      return otel::trace::SpanKind::kInternal;
    case SpanKind::kServer:
      return otel::trace::SpanKind::kServer;
    case SpanKind::kClient:
      return otel::trace::SpanKind::kClient;
    case SpanKind::kProducer:
      return otel::trace::SpanKind::kProducer;
    case SpanKind::kConsumer:
      return otel::trace::SpanKind::kConsumer;
  }
  return otel::trace::SpanKind::kInternal;
}

void Set(const SpanAttribute& attribute, otel::sdk::trace::Recordable* to) {
  const otel::nostd::string_view key(attribute.key.data(), attribute.key.size());
  if (const auto* const text = std::get_if<std::string>(&attribute.value)) {
    // A receiver refuses a whole call for a string that is no UTF-8.
    const std::string sound =
        base::IsValidUtf8(*text) ? *text : base::Printable(*text, kMaxWhyBytes);
    to->SetAttribute(key, otel::nostd::string_view(sound));
  } else {
    to->SetAttribute(key, std::get<int64_t>(attribute.value));
  }
}

otel::logs::Severity SeverityOf(base::LogLevel level) {
  switch (level) {
    case base::kDebug:
      return otel::logs::Severity::kDebug;
    case base::kInfo:
      return otel::logs::Severity::kInfo;
    case base::kWarning:
      return otel::logs::Severity::kWarn;
    case base::kError:
      return otel::logs::Severity::kError;
  }
  return otel::logs::Severity::kInfo;
}

otel::sdk::metrics::PointType ValuesOf(const Metric& metric, const Point& point, absl::Time now) {
  switch (metric.kind) {
    case Kind::kCounter: {
      otel::sdk::metrics::SumPointData sum;
      sum.value_ = point.value;
      sum.is_monotonic_ = true;
      return sum;
    }
    case Kind::kGauge: {
      otel::sdk::metrics::LastValuePointData last;
      last.value_ = point.value;
      last.is_lastvalue_valid_ = true;
      last.sample_ts_ = TimestampOf(now);
      return last;
    }
    case Kind::kHistogram:
      break;
  }
  otel::sdk::metrics::HistogramPointData histogram;
  histogram.boundaries_.assign(metric.buckets.begin(), metric.buckets.end());
  histogram.sum_ = point.value;
  histogram.record_min_max_ = false;
  histogram.counts_ = point.counts;
  for (const uint64_t count : point.counts) histogram.count_ += count;
  return histogram;
}

otel::sdk::metrics::InstrumentType InstrumentOf(Kind kind) {
  switch (kind) {
    case Kind::kCounter:
      return otel::sdk::metrics::InstrumentType::kCounter;
    case Kind::kGauge:
      return otel::sdk::metrics::InstrumentType::kObservableGauge;
    case Kind::kHistogram:
      break;
  }
  return otel::sdk::metrics::InstrumentType::kHistogram;
}

// What OpenTelemetry has a name for has that one: messaging.client.operation.duration, by the
// attributes messaging.system and error.type. All others are as Prometheus knows them.
bool IsOfConventions(const Metric& metric) { return absl::StartsWith(metric.name, "messaging_"); }

std::string NameOf(const Metric& metric) {
  if (!IsOfConventions(metric)) return std::string(metric.name);
  absl::string_view name = metric.name;
  absl::ConsumeSuffix(&name, "_total");
  absl::ConsumeSuffix(&name, "_seconds");
  return absl::StrReplaceAll(name, {{"_", "."}});
}

std::string AttributeOf(const Metric& metric, absl::string_view label) {
  return IsOfConventions(metric) ? absl::StrReplaceAll(label, {{"_", "."}}) : std::string(label);
}

// By the Unified Code for Units of Measure, as OpenTelemetry wants it.
std::string UnitOf(const Metric& metric) {
  if (metric.unit == "seconds") return "s";
  if (metric.unit == "bytes") return "By";
  return "{" + std::string(metric.unit) + "}";
}

}  // namespace

StoredLog::StoredLog(const base::LogRecord& record)
    : time(record.time),
      level(record.level),
      message(base::Printable(record.message, base::kMaxLogValueBytes)) {
  fields.reserve(record.fields.size());
  for (const base::LogField& field : record.fields) {
    fields.emplace_back(field.key, base::Printable(field.value, base::kMaxLogValueBytes));
  }
  if (record.trace != nullptr) trace = *record.trace;
}

void Fill(const Span& span, otel::sdk::trace::Recordable* to) {
  to->SetIdentity(ContextOf(span.trace, span.id), SpanIdOf(span.parent));
  to->SetTraceFlags(otel::trace::TraceFlags(span.trace.flags));
  to->SetName(span.name);
  to->SetSpanKind(KindOf(span.kind));
  to->SetStartTime(TimestampOf(span.start));
  to->SetDuration(std::chrono::nanoseconds(absl::ToInt64Nanoseconds(span.end - span.start)));
  for (const SpanAttribute& attribute : span.attributes) Set(attribute, to);
  for (const uint64_t link : span.links) to->AddLink(ContextOf(span.trace, link));
  if (span.error.empty()) return;
  to->SetAttribute("error.type", otel::nostd::string_view(span.error));
  to->SetStatus(otel::trace::StatusCode::kError, base::Printable(span.why, kMaxWhyBytes));
}

void Fill(const StoredLog& log, otel::sdk::logs::Recordable* to) {
  to->SetTimestamp(TimestampOf(log.time));
  to->SetObservedTimestamp(TimestampOf(log.time));
  to->SetSeverity(SeverityOf(log.level));
  to->SetBody(otel::nostd::string_view(log.message));
  for (const auto& [key, value] : log.fields) {
    to->SetAttribute(key, otel::nostd::string_view(value));
  }
  if (!log.trace.has_value()) return;
  to->SetTraceId(TraceIdOf(*log.trace));
  to->SetSpanId(SpanIdOf(log.trace->parent));
  to->SetTraceFlags(otel::trace::TraceFlags(log.trace->flags));
}

std::vector<otel::sdk::metrics::MetricData> MetricsOf(const Snapshot& snapshot, absl::Time since,
                                                      absl::Time now) {
  std::vector<otel::sdk::metrics::MetricData> all;
  for (const MetricSnapshot& taken : snapshot) {
    otel::sdk::metrics::MetricData& data = all.emplace_back();
    data.instrument_descriptor = {NameOf(taken.metric), std::string(taken.metric.help),
                                  UnitOf(taken.metric), InstrumentOf(taken.metric.kind),
                                  otel::sdk::metrics::InstrumentValueType::kDouble};
    data.aggregation_temporality = otel::sdk::metrics::AggregationTemporality::kCumulative;
    data.start_ts = TimestampOf(since);
    data.end_ts = TimestampOf(now);
    for (const Point& point : taken.points) {
      otel::sdk::metrics::PointDataAttributes& values = data.point_data_attr_.emplace_back();
      for (size_t i = 0; i < point.labels.size(); ++i) {
        if (point.labels[i].empty()) continue;  // as Prometheus has it: the label is not there
        values.attributes.SetAttribute(AttributeOf(taken.metric, taken.metric.labels[i]),
                                       otel::nostd::string_view(point.labels[i]));
      }
      values.point_data = ValuesOf(taken.metric, point, now);
    }
  }
  return all;
}

}  // namespace muster::telemetry
