// SPDX-License-Identifier: Apache-2.0
#include "muster/telemetry/otlp/otlp.h"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/mutex.h"
#include "muster/base/status.h"
#include "muster/telemetry/catalogue.h"
#include "muster/telemetry/export_queue.h"
#include "muster/telemetry/otlp/call_thread.h"
#include "muster/telemetry/otlp/environment.h"
#include "muster/telemetry/otlp/failure.h"
#include "muster/telemetry/otlp/records.h"
#include "opentelemetry/exporters/otlp/otlp_grpc_exporter_factory.h"
#include "opentelemetry/exporters/otlp/otlp_grpc_exporter_options.h"
#include "opentelemetry/exporters/otlp/otlp_grpc_log_record_exporter_factory.h"
#include "opentelemetry/exporters/otlp/otlp_grpc_log_record_exporter_options.h"
#include "opentelemetry/exporters/otlp/otlp_grpc_metric_exporter_factory.h"
#include "opentelemetry/exporters/otlp/otlp_grpc_metric_exporter_options.h"
#include "opentelemetry/sdk/common/global_log_handler.h"
#include "opentelemetry/sdk/instrumentationscope/instrumentation_scope.h"
#include "opentelemetry/sdk/logs/exporter.h"
#include "opentelemetry/sdk/metrics/push_metric_exporter.h"
#include "opentelemetry/sdk/resource/resource.h"
#include "opentelemetry/sdk/trace/exporter.h"

namespace muster::telemetry {
namespace {

namespace otel = opentelemetry;
using otel::sdk::common::ExportResult;

constexpr char kScope[] = "muster";

namespace internal_log = otel::sdk::common::internal_log;

// Where the library's errors go on this thread; null: nowhere.
thread_local std::string* library_error = nullptr;

// What the library has to say of a collector that is away is one line for each call. The counters
// tell the same (kTelemetryExports), but not why: the library answers only that a call failed.
class ErrorKeeper final : public internal_log::LogHandler {
 public:
  void Handle(internal_log::LogLevel level, const char*, int, const char* message,
              const otel::sdk::common::AttributeMap&) noexcept override {
    if (level == internal_log::LogLevel::Error && library_error != nullptr) {
      *library_error = message;
    }
  }
};

void SilenceLibrary() {
  internal_log::GlobalLogHandler::SetLogHandler(
      otel::nostd::shared_ptr<internal_log::LogHandler>(new ErrorKeeper));
}

// Answers why `call` failed; nullopt: it did not.
std::optional<std::string> FailureOf(std::function<ExportResult()> call, CallThread* calls) {
  const auto error = std::make_shared<std::string>();  // shared with a call that is left behind
  const std::optional<bool> sent = calls->Run([error, call = std::move(call)] {
    library_error = error.get();
    const ExportResult result = call();
    library_error = nullptr;
    return result == ExportResult::kSuccess;
  });
  if (!sent.has_value()) return "it does not answer";
  if (*sent) return std::nullopt;
  return DescribeFailure(*error);
}

// Who sends. Records of the library point to it.
struct Sender {
  otel::sdk::resource::Resource resource;
  otel::nostd::unique_ptr<otel::sdk::instrumentationscope::InstrumentationScope> scope;
};

// The library reads OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME, too, without decoding them:
// what it is told here wins.
otel::sdk::resource::Resource ResourceOf(const OtlpResource& resource,
                                         const OtlpSettings& settings) {
  otel::sdk::resource::ResourceAttributes attributes = {{"service.namespace", "muster"},
                                                        {"service.name", resource.service},
                                                        {"service.instance.id", resource.instance},
                                                        {"service.version", resource.version}};
  for (const auto& [name, value] : settings.resource) attributes[name] = value;
  return otel::sdk::resource::Resource::Create(attributes);
}

// All that the library would read from the environment by itself.
template <typename Options>
Options OptionsOf(const SignalSettings& settings) {
  Options options;
  options.endpoint = settings.endpoint;
  options.use_ssl_credentials = settings.has_tls();
  options.ssl_credentials_cacert_path = settings.certificate;
  options.ssl_credentials_cacert_as_string.clear();
  options.timeout = std::chrono::milliseconds(
      absl::ToInt64Milliseconds(absl::Ceil(settings.timeout, absl::Milliseconds(1))));
  options.metadata.clear();
  for (const auto& [name, value] : settings.headers) options.metadata.emplace(name, value);
  options.compression = settings.compressed ? "gzip" : "none";
  return options;
}

// The counters of one signal, and the log line when the collector goes or comes.
class Account {
 public:
  Account(Registry* registry, Signal signal, std::string endpoint)
      : name_(SignalName(signal)),
        endpoint_(std::move(endpoint)),
        dropped_(Counters<1>(registry, kTelemetryDropped).With({name_})),
        sent_(Counters<2>(registry, kTelemetryExports).With({name_, "ok"})),
        failed_(Counters<2>(registry, kTelemetryExports).With({name_, "failed"})) {}

  void NoteDropped(size_t count) const { dropped_.Add(static_cast<double>(count)); }

  // From one thread, about a call and why it failed (FailureOf). Answers whether it was a success.
  bool NoteCall(const std::optional<std::string>& failure) {
    const bool is_sent = !failure.has_value();
    (is_sent ? sent_ : failed_).Add();
    if (is_sent == is_there_) return is_sent;
    is_there_ = is_sent;
    if (is_sent) {
      base::Log(base::kInfo, "telemetry is sent again", {{"signal", name_}});
    } else {
      base::Log(base::kWarning,
                "the telemetry collector does not take what is sent; some is dropped",
                {{"signal", name_}, {"endpoint", endpoint_}, {"why", *failure}});
    }
    return is_sent;
  }

 private:
  const std::string name_;
  const std::string endpoint_;
  const Counter dropped_;
  const Counter sent_;
  const Counter failed_;
  bool is_there_ = true;  // as far as is known
};

// Sends items of one signal as they come. Exporter: of the library, for one kind of records.
template <typename T, typename Exporter>
class Stream {
 public:
  Stream(std::shared_ptr<Exporter> exporter, Signal signal, const SignalSettings& settings,
         std::shared_ptr<const Sender> sender, Registry* registry, base::Clock* clock)
      : exporter_(std::move(exporter)),
        sender_(std::move(sender)),
        account_(registry, signal, settings.endpoint),
        calls_(clock),
        queue_(
            settings.limits, clock,
            [this](const std::vector<T>& items) { return account_.NoteCall(Send(items)); },
            [this](size_t count) { account_.NoteDropped(count); }) {}

  void Add(T item) { queue_.Add(std::move(item)); }
  void Close() {
    queue_.Close();
    calls_.Close(kCallPatienceAtEnd);
  }

 private:
  using Records = std::vector<decltype(std::declval<Exporter>().MakeRecordable())>;

  // Why it failed.
  std::optional<std::string> Send(const std::vector<T>& items) {
    const auto records = std::make_shared<Records>();
    records->reserve(items.size());
    for (const T& item : items) {
      auto record = exporter_->MakeRecordable();
      record->SetResource(sender_->resource);
      record->SetInstrumentationScope(*sender_->scope);
      Fill(item, record.get());
      records->push_back(std::move(record));
    }
    return FailureOf(
        [records, exporter = exporter_, sender = sender_] {
          return exporter->Export({records->data(), records->size()});
        },
        &calls_);
  }

  const std::shared_ptr<Exporter> exporter_;    // shared with a call that is left behind
  const std::shared_ptr<const Sender> sender_;  // likewise
  Account account_;
  CallThread calls_;
  ExportQueue<T> queue_;  // last: its thread uses all of these
};

// Sends the metrics of a registry each interval, and once more at its end.
class MetricPush {
 public:
  MetricPush(std::shared_ptr<otel::sdk::metrics::PushMetricExporter> exporter,
             const OtlpSettings& settings, std::shared_ptr<const Sender> sender, Registry* registry,
             base::Clock* clock)
      : exporter_(std::move(exporter)),
        interval_(settings.metric_interval),
        sender_(std::move(sender)),
        registry_(registry),
        clock_(clock),
        since_(clock->Now()),
        account_(registry, Signal::kMetrics, settings.metrics.endpoint),
        calls_(clock),
        thread_([this] { Run(); }) {}

  ~MetricPush() {
    Close();
    thread_.join();
  }

  // Lets the thread send the metrics once more, and end. Returns at once.
  void Close() ABSL_LOCKS_EXCLUDED(mu_) {
    calls_.Close(kCallPatienceAtEnd);
    base::MutexLock lock(&mu_);
    closing_ = true;
    changed_.NotifyAll();
  }

 private:
  void Run() {
    bool is_there = true;
    while (Sleep()) is_there = Push();
    if (is_there) Push();
  }

  // False: the push is closed.
  bool Sleep() ABSL_LOCKS_EXCLUDED(mu_) {
    base::MutexLock lock(&mu_);
    const absl::Duration until = clock_->Monotonic() + interval_;
    while (!closing_) {
      if (clock_->WaitUntil(&changed_, &mu_, until)) return true;
    }
    return false;
  }

  // Whether the collector took them.
  bool Push() {
    otel::sdk::metrics::ScopeMetrics metrics;
    metrics.scope_ = sender_->scope.get();
    metrics.metric_data_ = MetricsOf(registry_->TakeSnapshot(), since_, clock_->Now());
    const auto all = std::make_shared<otel::sdk::metrics::ResourceMetrics>();
    all->resource_ = &sender_->resource;
    all->scope_metric_data_.push_back(std::move(metrics));
    return account_.NoteCall(FailureOf(
        [all, exporter = exporter_, sender = sender_] { return exporter->Export(*all); }, &calls_));
  }

  // Shared with a call that is left behind, and so is sender_.
  const std::shared_ptr<otel::sdk::metrics::PushMetricExporter> exporter_;
  const absl::Duration interval_;
  const std::shared_ptr<const Sender> sender_;
  Registry* const registry_;  // not owned
  base::Clock* const clock_;  // not owned
  const absl::Time since_;
  Account account_;
  CallThread calls_;
  base::Mutex mu_;
  base::CondVar changed_;
  bool closing_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;  // last: it uses all of these
};

using SpanStream = Stream<Span, otel::sdk::trace::SpanExporter>;
using LogStream = Stream<StoredLog, otel::sdk::logs::LogRecordExporter>;

class OtlpExporter final : public OtlpExport, private SpanSink {
 public:
  OtlpExporter(const OtlpResource& resource, const OtlpSettings& settings, Registry* registry,
               base::Clock* clock) {
    SilenceLibrary();
    namespace otlp = otel::exporter::otlp;
    const auto sender = std::make_shared<const Sender>(Sender{
        ResourceOf(resource, settings),
        otel::sdk::instrumentationscope::InstrumentationScope::Create(kScope, resource.version)});
    if (settings.traces.is_sent()) {
      spans_ = std::make_unique<SpanStream>(
          otlp::OtlpGrpcExporterFactory::Create(
              OptionsOf<otlp::OtlpGrpcExporterOptions>(settings.traces)),
          Signal::kTraces, settings.traces, sender, registry, clock);
    }
    if (settings.metrics.is_sent()) {
      metrics_ = std::make_unique<MetricPush>(
          otlp::OtlpGrpcMetricExporterFactory::Create(
              OptionsOf<otlp::OtlpGrpcMetricExporterOptions>(settings.metrics)),
          settings, sender, registry, clock);
    }
    if (!settings.logs.is_sent()) return;
    logs_ = std::make_unique<LogStream>(
        otlp::OtlpGrpcLogRecordExporterFactory::Create(
            OptionsOf<otlp::OtlpGrpcLogRecordExporterOptions>(settings.logs)),
        Signal::kLogs, settings.logs, sender, registry, clock);
    base::SetLogObserver([this](const base::LogRecord& record) { logs_->Add(StoredLog(record)); });
  }

  // All three end at the same time.
  ~OtlpExporter() override {
    if (logs_ != nullptr) base::SetLogObserver(nullptr);
    if (spans_ != nullptr) spans_->Close();
    if (metrics_ != nullptr) metrics_->Close();
    if (logs_ != nullptr) logs_->Close();
  }

  SpanSink* spans() override { return spans_ == nullptr ? nullptr : this; }

 private:
  void Record(Span span) override { spans_->Add(std::move(span)); }

  std::unique_ptr<LogStream> logs_;  // null: left out, as the others
  std::unique_ptr<MetricPush> metrics_;
  std::unique_ptr<SpanStream> spans_;
};

}  // namespace

bool HasOtlp() { return true; }

absl::StatusOr<std::unique_ptr<OtlpExport>> OtlpExport::Start(const OtlpResource& resource,
                                                              const OtlpSettings& settings,
                                                              Registry* registry,
                                                              base::Clock* clock) {
  return std::make_unique<OtlpExporter>(resource, settings, registry, clock);
}

}  // namespace muster::telemetry
