// SPDX-License-Identifier: Apache-2.0
#include "muster/telemetry/otlp/environment.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/quantity.h"

namespace muster::telemetry {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;

constexpr char kEndpoint[] = "OTEL_EXPORTER_OTLP_ENDPOINT";

// The settings that `variables` make beside an endpoint, which they may change.
OtlpSettings Read(Variables variables) {
  variables.emplace(kEndpoint, "http://collector:4317");
  const absl::StatusOr<OtlpSettings> settings = ReadOtlpSettings(variables);
  EXPECT_TRUE(settings.ok()) << settings.status();
  return settings.value_or(OtlpSettings());
}

TEST(OtlpSettingsTest, SendNothingWithoutAnEndpoint) {
  const auto settings = ReadOtlpSettings({});
  ASSERT_TRUE(settings.ok());
  EXPECT_FALSE(settings->is_sent());
  EXPECT_THAT(settings->warnings, IsEmpty());
  EXPECT_FALSE(ReadOtlpSettings({{kEndpoint, ""}})->is_sent()) << "set to nothing";
}

TEST(OtlpSettingsTest, SendAllThreeSignalsToAnEndpoint) {
  const OtlpSettings settings = Read({});
  for (const Signal signal : {Signal::kTraces, Signal::kMetrics, Signal::kLogs}) {
    EXPECT_EQ(settings.of(signal).endpoint, "http://collector:4317");
    EXPECT_EQ(settings.of(signal).timeout, kCallTimeout);
    EXPECT_FALSE(settings.of(signal).has_tls());
    EXPECT_FALSE(settings.of(signal).compressed);
  }
  EXPECT_EQ(settings.metric_interval, absl::Minutes(1));
  EXPECT_THAT(settings.resource, IsEmpty());
  EXPECT_THAT(settings.warnings, IsEmpty());
}

TEST(OtlpSettingsTest, NameAnEndpointByItsUrl) {
  for (const auto& [text, endpoint] : std::vector<std::pair<std::string, std::string>>{
           {"http://h:4317/", "http://h:4317"},
           {"HTTPS://otlp.example.com", "https://otlp.example.com:443"},
           {"http://10.0.0.1", "http://10.0.0.1:80"},
           {"http://[::1]:4317", "http://[::1]:4317"},
           {"http://[::1]", "http://[::1]:80"},
       }) {
    EXPECT_EQ(Read({{kEndpoint, text}}).logs.endpoint, endpoint) << text;
  }
}

TEST(OtlpSettingsTest, TakeWhatIsSaidOfOneSignalBeforeWhatIsSaidOfAll) {
  const OtlpSettings settings = Read({{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://traces:1"},
                                      {"OTEL_EXPORTER_OTLP_TIMEOUT", "10000"},
                                      {"OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "500ms"},
                                      {"OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"},
                                      {"OTEL_EXPORTER_OTLP_LOGS_COMPRESSION", "none"},
                                      {"OTEL_EXPORTER_OTLP_HEADERS", "Api-Key=a%2Cb, x=1"}});
  EXPECT_EQ(settings.traces.endpoint, "https://traces:1");
  EXPECT_TRUE(settings.traces.has_tls());
  EXPECT_EQ(settings.traces.timeout, absl::Milliseconds(500));
  EXPECT_EQ(settings.metrics.timeout, absl::Seconds(10)) << "milliseconds, by the specification";
  EXPECT_TRUE(settings.metrics.compressed);
  EXPECT_FALSE(settings.logs.compressed);
  EXPECT_THAT(settings.logs.headers, ElementsAre(Pair("api-key", "a,b"), Pair("x", "1")));
}

TEST(OtlpSettingsTest, SendOneSignalAlone) {
  const auto settings =
      ReadOtlpSettings({{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://traces:4317"}});
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_TRUE(settings->traces.is_sent());
  EXPECT_FALSE(settings->metrics.is_sent());
  EXPECT_FALSE(settings->logs.is_sent());
}

TEST(OtlpSettingsTest, LeaveOutWhatIsSwitchedOff) {
  const OtlpSettings settings =
      Read({{"OTEL_TRACES_EXPORTER", "none"}, {"OTEL_METRICS_EXPORTER", "otlp"}});
  EXPECT_FALSE(settings.traces.is_sent());
  EXPECT_TRUE(settings.metrics.is_sent());
  EXPECT_TRUE(settings.logs.is_sent());
  EXPECT_FALSE(Read({{"OTEL_SDK_DISABLED", "True"}, {"OTEL_TRACES_EXPORTER", "zipkin"}}).is_sent());
}

TEST(OtlpSettingsTest, LeaveOutASignalThatIsMeantForAnotherProtocol) {
  const OtlpSettings settings =
      Read({{"OTEL_METRICS_EXPORTER", "none"},
            {"OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "http/protobuf"},
            {"OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "delta"}});
  EXPECT_FALSE(settings.metrics.is_sent());
  EXPECT_TRUE(settings.traces.is_sent());
  EXPECT_THAT(settings.warnings,
              ElementsAre(HasSubstr("without effect here: OTEL_EXPORTER_OTLP_METRICS_PROTOCOL")));
}

TEST(OtlpSettingsTest, TakeTheResourceDecodedAndTheNameOfTheServiceLast) {
  const OtlpSettings settings =
      Read({{"OTEL_RESOURCE_ATTRIBUTES", "team=a%20b%2Cc,service.name=other"},
            {"OTEL_SERVICE_NAME", "billing"}});
  EXPECT_THAT(settings.resource, ElementsAre(Pair("team", "a b,c"), Pair("service.name", "other"),
                                             Pair("service.name", "billing")));
}

TEST(OtlpSettingsTest, TraceTheShareThatASamplerNames) {
  EXPECT_EQ(Read({}).trace_sample, std::nullopt);
  for (const std::string before : {"", "parentbased_"}) {
    EXPECT_EQ(Read({{"OTEL_TRACES_SAMPLER", before + "always_on"}}).trace_sample, 1);
    EXPECT_EQ(Read({{"OTEL_TRACES_SAMPLER", before + "always_off"}}).trace_sample, 0);
    EXPECT_EQ(Read({{"OTEL_TRACES_SAMPLER", before + "traceidratio"}}).trace_sample, 1);
    const OtlpSettings quarter = Read(
        {{"OTEL_TRACES_SAMPLER", before + "traceidratio"}, {"OTEL_TRACES_SAMPLER_ARG", "0.25"}});
    EXPECT_EQ(quarter.trace_sample, 0.25);
    EXPECT_THAT(quarter.warnings, IsEmpty());
  }
}

TEST(OtlpSettingsTest, RefuseAShareThatIsNone) {
  for (const char* share : {"-0.1", "1.1", "nan", "half"}) {
    const absl::Status refused = ReadOtlpSettings({{"OTEL_TRACES_SAMPLER", "traceidratio"},
                                                   {"OTEL_TRACES_SAMPLER_ARG", share}})
                                     .status();
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << share;
    EXPECT_THAT(std::string(refused.message()),
                AllOf(HasSubstr("OTEL_TRACES_SAMPLER_ARG"), HasSubstr("0 to 1")));
  }
}

TEST(OtlpSettingsTest, SendSpansAndLogRecordsInTheBatchesThatTheEnvironmentNames) {
  const OtlpSettings usual = Read({});
  EXPECT_EQ(usual.traces.limits.most_together, kSpanLimits.most_together);
  EXPECT_EQ(usual.logs.limits.most_waiting, kLogLimits.most_waiting);
  const OtlpSettings settings = Read({{"OTEL_BSP_SCHEDULE_DELAY", "5000"},
                                      {"OTEL_BSP_MAX_QUEUE_SIZE", "4096"},
                                      {"OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "512"},
                                      {"OTEL_BSP_EXPORT_TIMEOUT", "700"},
                                      {"OTEL_BLRP_MAX_QUEUE_SIZE", "100"},
                                      {"OTEL_METRIC_EXPORT_TIMEOUT", "30s"}});
  EXPECT_THAT(settings.warnings, IsEmpty());
  EXPECT_EQ(settings.traces.limits.linger, absl::Seconds(5));
  EXPECT_EQ(settings.traces.limits.most_waiting, 4096U);
  EXPECT_EQ(settings.traces.limits.most_together, 512U);
  EXPECT_EQ(settings.traces.timeout, absl::Milliseconds(700));
  EXPECT_EQ(settings.logs.limits.most_waiting, 100U);
  EXPECT_EQ(settings.logs.limits.most_together, 100U) << "no call has more than may wait";
  EXPECT_EQ(settings.logs.timeout, kCallTimeout);
  EXPECT_EQ(settings.metrics.timeout, absl::Seconds(30));
}

TEST(OtlpSettingsTest, GiveACallTheShorterOfTwoTimes) {
  for (const char* timeout : {"500ms", "9s"}) {
    EXPECT_EQ(
        Read({{"OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", timeout}, {"OTEL_BSP_EXPORT_TIMEOUT", "2500"}})
            .traces.timeout,
        std::min(*base::ParseDuration(timeout), absl::Milliseconds(2500)));
  }
}

TEST(OtlpSettingsTest, PassTheTraceContextOnAndRefuseWhatCannotBe) {
  for (const char* usual : {"tracecontext,baggage", "tracecontext", " baggage , tracecontext"}) {
    EXPECT_THAT(Read({{"OTEL_PROPAGATORS", usual}}).warnings, IsEmpty()) << usual;
  }
  EXPECT_THAT(Read({{"OTEL_PROPAGATORS", "tracecontext,b3"}}).warnings,
              ElementsAre(AllOf(HasSubstr("OTEL_PROPAGATORS"), HasSubstr("not b3"))));
  EXPECT_THAT(Read({{"OTEL_PROPAGATORS", "b3"}, {"OTEL_TRACES_EXPORTER", "none"}}).warnings,
              IsEmpty());
}

TEST(OtlpSettingsTest, WarnOfWhatHasNoEffect) {
  EXPECT_THAT(Read({{"OTEL_TRACES_SAMPLER_ARG", "0.5"}}).warnings,
              ElementsAre(HasSubstr("OTEL_TRACES_SAMPLER_ARG")));
  EXPECT_THAT(Read({{"OTEL_LOG_LEVEL", "debug"}, {"OTEL_SPAN_LINK_COUNT_LIMIT", "1"}}).warnings,
              ElementsAre(HasSubstr("OTEL_LOG_LEVEL, OTEL_SPAN_LINK_COUNT_LIMIT")));
  EXPECT_THAT(ReadOtlpSettings({{"OTEL_LOGS_EXPORTER", "otlp"}})->warnings,
              ElementsAre(AllOf(HasSubstr("OTEL_LOGS_EXPORTER"), HasSubstr(kEndpoint))));
}

TEST(OtlpSettingsTest, RefuseByNameWhatIsWrongOrNotSupported) {
  struct Case {
    std::string name, value, instead;
  };
  for (const Case& wrong : std::vector<Case>{
           {"OTEL_SDK_DISABLED", "yes", "true or false"},
           {"OTEL_TRACES_EXPORTER", "zipkin", "otlp, or none"},
           {"OTEL_METRICS_EXPORTER", "prometheus", "otlp, or none"},
           {"OTEL_LOGS_EXPORTER", "otlp,console", "otlp, or none"},
           {"OTEL_TRACES_SAMPLER", "nonsense", "traceidratio"},
           {"OTEL_TRACES_SAMPLER", "parentbased_jaeger_remote", "traceidratio"},
           {"OTEL_TRACES_SAMPLER", "xray", "traceidratio"},
           {"OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf", "grpc"},
           {"OTEL_EXPORTER_OTLP_LOGS_PROTOCOL", "http/json", "grpc"},
           {kEndpoint, "localhost:4317", "http://HOST:PORT"},
           {kEndpoint, "::::", "http://HOST:PORT"},
           {kEndpoint, "nonsense://x", "http://HOST:PORT"},
           {kEndpoint, "http://", "http://HOST:PORT"},
           {kEndpoint, "http://h:99999", "http://HOST:PORT"},
           {kEndpoint, "http://a b:4317", "http://HOST:PORT"},
           {kEndpoint, "http://h:4318/v1/traces", "no path"},
           {"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "h", "http://HOST:PORT"},
           {"OTEL_EXPORTER_OTLP_TIMEOUT", "0", "milliseconds above 0"},
           {"OTEL_EXPORTER_OTLP_TIMEOUT", "-5", "milliseconds above 0"},
           {"OTEL_EXPORTER_OTLP_TIMEOUT", "soon", "milliseconds above 0"},
           {"OTEL_EXPORTER_OTLP_TIMEOUT", "10000000", "an hour at most"},
           {"OTEL_EXPORTER_OTLP_COMPRESSION", "zstd", "gzip or none"},
           {"OTEL_EXPORTER_OTLP_INSECURE", "maybe", "true or false"},
           {"OTEL_EXPORTER_OTLP_CERTIFICATE", "/no/such/file", "trusted roots"},
           {"OTEL_EXPORTER_OTLP_CLIENT_KEY", "/key", "no certificate"},
           {"OTEL_EXPORTER_OTLP_HEADERS", "nothing", "NAME=VALUE"},
           {"OTEL_EXPORTER_OTLP_HEADERS", "a b=1", "a header's name"},
           {"OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "delta", "cumulative"},
           {"OTEL_METRIC_EXPORT_INTERVAL", "0", "milliseconds above 0"},
           {"OTEL_BSP_MAX_QUEUE_SIZE", "0", "from 1 to 1000000"},
           {"OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "40000", "from 1 to 32768"},
           {"OTEL_BLRP_SCHEDULE_DELAY", "never", "milliseconds above 0"},
           {"OTEL_PROPAGATORS", "b3", "write tracecontext"},
           {"OTEL_RESOURCE_ATTRIBUTES", "a", "NAME=VALUE"},
           {"OTEL_RESOURCE_ATTRIBUTES", "a=%zz", "%25"},
       }) {
    Variables variables = {{wrong.name, wrong.value}};
    variables.emplace(kEndpoint, "http://collector:4317");
    const absl::Status refused = ReadOtlpSettings(variables).status();
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << wrong.name << "=" << wrong.value;
    EXPECT_THAT(std::string(refused.message()),
                AllOf(HasSubstr(wrong.name), HasSubstr(wrong.instead)))
        << wrong.value;
  }
}

TEST(OtlpSettingsTest, RepeatNoSecret) {
  for (const auto& [name, value] : Variables{{"OTEL_EXPORTER_OTLP_HEADERS", "key=hunter2%"},
                                             {kEndpoint, "http://user:hunter2@collector:4317"}}) {
    const absl::Status refused = ReadOtlpSettings({{name, value}}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << name;
    EXPECT_THAT(std::string(refused.message()), Not(HasSubstr("hunter2")));
  }
}

}  // namespace
}  // namespace muster::telemetry
