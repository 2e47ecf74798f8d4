#include "muster/telemetry/otlp/otlp.h"

#include <chrono>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/mutex.h"
#include "muster/base/status.h"
#include "muster/telemetry/catalogue.h"
#include "muster/telemetry/export_queue.h"
#include "muster/telemetry/otlp/environment.h"
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

// How long a call may take, unless the environment says: a process that ends waits for one.
constexpr std::chrono::seconds kCallTimeout{2};
// A call costs as much as some ten spans.
constexpr absl::Duration kLinger = absl::Milliseconds(50);
// Log records are longer than spans: a call of so many fits what a collector takes, 4 MiB.
constexpr ExportLimits kLogLimits = {.most_waiting = 4096, .most_together = 256, .linger = kLinger};
constexpr ExportLimits kSpanLimits = {.linger = kLinger};

const ExportLimits& LimitsOf(Signal signal) {
  return signal == Signal::kLogs ? kLogLimits : kSpanLimits;
}

constexpr char kScope[] = "muster";

// What the library has to say of a collector that is away is one line for each call. The counters
// tell the same (kTelemetryExports).
void SilenceLibrary() {
  otel::sdk::common::internal_log::GlobalLogHandler::SetLogHandler(
      otel::nostd::shared_ptr<otel::sdk::common::internal_log::LogHandler>(
          new otel::sdk::common::internal_log::NoopLogHandler));
}

otel::sdk::resource::Resource ResourceOf(const OtlpResource& resource) {
  return otel::sdk::resource::Resource::Create({{"service.namespace", "muster"},
                                                {"service.name", resource.service},
                                                {"service.instance.id", resource.instance},
                                                {"service.version", resource.version}});
}

template <typename Options>
Options OptionsOf(Signal signal) {
  Options options;
  if (!SetsTimeout(signal)) options.timeout = kCallTimeout;
  return options;
}

// The counters of one signal, and the log line when the collector goes or comes.
class Account {
 public:
  Account(Registry* registry, Signal signal)
      : name_(SignalName(signal)),
        dropped_(Counters<1>(registry, kTelemetryDropped).With({name_})),
        sent_(Counters<2>(registry, kTelemetryExports).With({name_, "ok"})),
        failed_(Counters<2>(registry, kTelemetryExports).With({name_, "failed"})) {}

  void NoteDropped(size_t count) const { dropped_.Add(static_cast<double>(count)); }

  // From one thread. Answers whether it was a success.
  bool NoteCall(ExportResult result) {
    const bool is_sent = result == ExportResult::kSuccess;
    (is_sent ? sent_ : failed_).Add();
    if (is_sent != is_there_) {
      is_there_ = is_sent;
      base::Log(is_sent ? base::kInfo : base::kWarning,
                is_sent ? "telemetry is sent again"
                        : "the telemetry collector does not take what is sent; some is dropped",
                {{"signal", name_}});
    }
    return is_sent;
  }

 private:
  const std::string name_;
  const Counter dropped_;
  const Counter sent_;
  const Counter failed_;
  bool is_there_ = true;  // as far as is known
};

// Sends items of one signal as they come. Exporter: of the library, for one kind of records.
template <typename T, typename Exporter>
class Stream {
 public:
  Stream(std::unique_ptr<Exporter> exporter, Signal signal,
         const otel::sdk::resource::Resource* resource,
         const otel::sdk::instrumentationscope::InstrumentationScope* scope, Registry* registry,
         base::Clock* clock)
      : exporter_(std::move(exporter)),
        resource_(resource),
        scope_(scope),
        account_(registry, signal),
        queue_(
            LimitsOf(signal), clock, [this](std::vector<T> items) { return Send(items); },
            [this](size_t count) { account_.NoteDropped(count); }) {}

  void Add(T item) { queue_.Add(std::move(item)); }
  void Close() { queue_.Close(); }

 private:
  bool Send(const std::vector<T>& items) {
    std::vector<decltype(exporter_->MakeRecordable())> records;
    records.reserve(items.size());
    for (const T& item : items) {
      auto record = exporter_->MakeRecordable();
      record->SetResource(*resource_);
      record->SetInstrumentationScope(*scope_);
      Fill(item, record.get());
      records.push_back(std::move(record));
    }
    return account_.NoteCall(exporter_->Export({records.data(), records.size()}));
  }

  const std::unique_ptr<Exporter> exporter_;
  const otel::sdk::resource::Resource* const resource_;                       // not owned
  const otel::sdk::instrumentationscope::InstrumentationScope* const scope_;  // not owned
  Account account_;
  ExportQueue<T> queue_;  // last: its thread uses all of these
};

// Sends the metrics of a registry each interval, and once more at its end.
class MetricPush {
 public:
  MetricPush(std::unique_ptr<otel::sdk::metrics::PushMetricExporter> exporter,
             absl::Duration interval, const otel::sdk::resource::Resource* resource,
             const otel::sdk::instrumentationscope::InstrumentationScope* scope, Registry* registry,
             base::Clock* clock)
      : exporter_(std::move(exporter)),
        interval_(interval),
        resource_(resource),
        scope_(scope),
        registry_(registry),
        clock_(clock),
        since_(clock->Now()),
        account_(registry, Signal::kMetrics),
        thread_([this] { Run(); }) {}

  ~MetricPush() {
    Close();
    thread_.join();
  }

  // Lets the thread send the metrics once more, and end. Returns at once.
  void Close() ABSL_LOCKS_EXCLUDED(mu_) {
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
    metrics.scope_ = scope_;
    metrics.metric_data_ = MetricsOf(registry_->TakeSnapshot(), since_, clock_->Now());
    otel::sdk::metrics::ResourceMetrics all;
    all.resource_ = resource_;
    all.scope_metric_data_.push_back(std::move(metrics));
    return account_.NoteCall(exporter_->Export(all));
  }

  const std::unique_ptr<otel::sdk::metrics::PushMetricExporter> exporter_;
  const absl::Duration interval_;
  const otel::sdk::resource::Resource* const resource_;                       // not owned
  const otel::sdk::instrumentationscope::InstrumentationScope* const scope_;  // not owned
  Registry* const registry_;                                                  // not owned
  base::Clock* const clock_;                                                  // not owned
  const absl::Time since_;
  Account account_;
  base::Mutex mu_;
  base::CondVar changed_;
  bool closing_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;  // last: it uses all of these
};

using SpanStream = Stream<Span, otel::sdk::trace::SpanExporter>;
using LogStream = Stream<StoredLog, otel::sdk::logs::LogRecordExporter>;

class OtlpExporter final : public OtlpExport, private SpanSink {
 public:
  OtlpExporter(const OtlpResource& resource, absl::Duration metric_interval, Registry* registry,
               base::Clock* clock)
      : resource_(ResourceOf(resource)),
        scope_(otel::sdk::instrumentationscope::InstrumentationScope::Create(kScope,
                                                                             resource.version)) {
    SilenceLibrary();
    namespace otlp = otel::exporter::otlp;
    if (WantsSignal(Signal::kTraces)) {
      spans_ = std::make_unique<SpanStream>(
          otlp::OtlpGrpcExporterFactory::Create(
              OptionsOf<otlp::OtlpGrpcExporterOptions>(Signal::kTraces)),
          Signal::kTraces, &resource_, scope_.get(), registry, clock);
    }
    if (WantsSignal(Signal::kMetrics)) {
      metrics_ = std::make_unique<MetricPush>(
          otlp::OtlpGrpcMetricExporterFactory::Create(
              OptionsOf<otlp::OtlpGrpcMetricExporterOptions>(Signal::kMetrics)),
          metric_interval, &resource_, scope_.get(), registry, clock);
    }
    if (!WantsSignal(Signal::kLogs)) return;
    logs_ = std::make_unique<LogStream>(
        otlp::OtlpGrpcLogRecordExporterFactory::Create(
            OptionsOf<otlp::OtlpGrpcLogRecordExporterOptions>(Signal::kLogs)),
        Signal::kLogs, &resource_, scope_.get(), registry, clock);
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

  const otel::sdk::resource::Resource resource_;
  const otel::nostd::unique_ptr<otel::sdk::instrumentationscope::InstrumentationScope> scope_;
  std::unique_ptr<LogStream> logs_;  // null: left out, as the others
  std::unique_ptr<MetricPush> metrics_;
  std::unique_ptr<SpanStream> spans_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<OtlpExport>> OtlpExport::Start(const OtlpResource& resource,
                                                              Registry* registry,
                                                              base::Clock* clock) {
  MUSTER_ASSIGN_OR_RETURN(const absl::Duration interval, MetricInterval());
  return std::make_unique<OtlpExporter>(resource, interval, registry, clock);
}

}  // namespace muster::telemetry
