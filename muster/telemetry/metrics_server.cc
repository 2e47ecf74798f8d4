// SPDX-License-Identifier: Apache-2.0

// The HTTP server is civetweb, on which prometheus-cpp's own Exposer stands, too. Exposer is not
// used: it adds metrics of its own that are in no catalogue, and hands its whole answer to civetweb
// at once, which then waits for as long as the peer takes a byte now and then.
#include "muster/telemetry/metrics_server.h"

#include <chrono>
#include <future>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "civetweb.h"
#include "muster/base/mutex.h"
#include "muster/base/text.h"

namespace muster::telemetry {
namespace {

// civetweb looks at the clock once for each write: small ones let this server look, too.
constexpr size_t kWriteBytes = size_t{16} << 10;
constexpr std::chrono::milliseconds kKnockPause{10};
constexpr size_t kMaxReasonBytes = 500;
constexpr char kPrometheusType[] = "text/plain; version=0.0.4; charset=utf-8";
constexpr char kOpenMetricsType[] = "application/openmetrics-text; version=1.0.0; charset=utf-8";

struct Answer {
  int code;
  absl::string_view reason;
  absl::string_view type;
  std::string body;
};

std::string HostOf(absl::string_view address) {
  absl::string_view host = address.substr(0, address.rfind(':'));
  if (absl::ConsumePrefix(&host, "[")) absl::ConsumeSuffix(&host, "]");
  return std::string(host);
}

// A Prometheus server names OpenMetrics first, and takes either.
TextFormat FormatFor(mg_connection* connection) {
  const char* const accepted = mg_get_header(connection, "Accept");
  const bool takes_it =
      accepted != nullptr && absl::StrContains(accepted, "application/openmetrics-text");
  return takes_it ? TextFormat::kOpenMetrics : TextFormat::kPrometheus;
}

}  // namespace

// One civetweb context with its handlers.
class MetricsServer::Http {
 public:
  Http(const MetricsServerOptions& options, Page page)
      : host_(HostOf(options.address)),
        answer_patience_(options.answer_patience),
        readiness_(options.readiness),
        clock_(options.clock),
        page_(std::move(page)) {}
  ~Http() {
    if (context_ != nullptr) Stop();
  }

  absl::Status Listen(const MetricsServerOptions& options) ABSL_LOCKS_EXCLUDED(mu_);
  int port() const;

 private:
  static int OnRequest(mg_connection* connection, void* self) {
    return static_cast<Http*>(self)->Serve(connection);
  }
  // What keeps civetweb from starting; it logs nothing later on.
  static int OnLog(const mg_connection* connection, const char* message) ABSL_LOCKS_EXCLUDED(mu_);

  void Stop();
  int Serve(mg_connection* connection);
  Answer AnswerTo(absl::string_view method, absl::string_view path, TextFormat format) const;
  Answer TellReadiness() const;
  void SendInTime(mg_connection* connection, absl::string_view bytes) const;

  const std::string host_;  // without the brackets of IPv6
  const absl::Duration answer_patience_;
  const std::function<absl::Status()> readiness_;  // may be null
  base::Clock* const clock_;                       // not owned
  const Page page_;
  mg_context* context_ = nullptr;
  base::Mutex mu_;
  std::string trouble_ ABSL_GUARDED_BY(mu_);
};

int MetricsServer::Http::OnLog(const mg_connection* connection, const char* message) {
  auto* const self = static_cast<Http*>(mg_get_user_data(mg_get_context(connection)));
  base::MutexLock lock(&self->mu_);
  // The first line is the cause.
  if (self->context_ == nullptr && self->trouble_.empty()) self->trouble_ = message;
  return 1;
}

absl::Status MetricsServer::Http::Listen(const MetricsServerOptions& options) {
  const std::string threads = absl::StrCat(options.threads);
  const std::string waiting = absl::StrCat(kWaitingConnections);
  const std::string patience = absl::StrCat(absl::ToInt64Milliseconds(options.request_patience));
  const char* settings[] = {"listening_ports",
                            options.address.c_str(),
                            "num_threads",
                            threads.c_str(),
                            "connection_queue",
                            waiting.c_str(),
                            "listen_backlog",
                            waiting.c_str(),
                            "request_timeout_ms",
                            patience.c_str(),
                            "enable_keep_alive",
                            "no",
                            nullptr};
  mg_callbacks callbacks = {};
  callbacks.log_message = &OnLog;
  mg_context* const started = mg_start(&callbacks, this, settings);
  base::MutexLock lock(&mu_);
  if (started == nullptr) {
    return absl::UnavailableError(absl::StrCat("metrics at ", options.address, ": ",
                                               trouble_.empty() ? "cannot listen" : trouble_));
  }
  context_ = started;
  mg_set_request_handler(context_, "/**", &OnRequest, this);
  return absl::OkStatus();
}

// civetweb looks whether it is to stop when a connection comes, and else every two seconds only.
void MetricsServer::Http::Stop() {
  const int own_port = port();
  const std::future<void> stopped = std::async(std::launch::async, [this] { mg_stop(context_); });
  do {
    mg_connection* const knock =
        mg_connect_client(host_.c_str(), own_port, /*use_ssl=*/0, nullptr, 0);
    if (knock != nullptr) mg_close_connection(knock);
  } while (stopped.wait_for(kKnockPause) != std::future_status::ready);
}

int MetricsServer::Http::port() const {
  mg_server_port ports[1] = {};
  return mg_get_server_ports(context_, 1, ports) > 0 ? ports[0].port : 0;
}

Answer MetricsServer::Http::AnswerTo(absl::string_view method, absl::string_view path,
                                     TextFormat format) const {
  if (method != "GET" && method != "HEAD") {
    return {405, "Method Not Allowed", "text/plain", "GET is what this server answers\n"};
  }
  if (path == "/healthz") return {200, "OK", "text/plain", "alive\n"};
  if (path == "/readyz") return TellReadiness();
  if (path != "/metrics") {
    return {404, "Not Found", "text/plain",
            "the metrics are at /metrics; probes ask /healthz and /readyz\n"};
  }
  const bool is_open_metrics = format == TextFormat::kOpenMetrics;
  return {200, "OK", is_open_metrics ? kOpenMetricsType : kPrometheusType, page_(format)};
}

Answer MetricsServer::Http::TellReadiness() const {
  const absl::Status ready = readiness_ ? readiness_() : absl::OkStatus();
  if (ready.ok()) return {200, "OK", "text/plain", "ready\n"};
  return {503, "Service Unavailable", "text/plain",
          absl::StrCat(base::Printable(ready.message(), kMaxReasonBytes), "\n")};
}

int MetricsServer::Http::Serve(mg_connection* connection) {
  const mg_request_info* const request = mg_get_request_info(connection);
  const absl::string_view method = request->request_method;
  Answer answer = AnswerTo(method, request->local_uri, FormatFor(connection));
  std::string bytes =
      absl::StrCat("HTTP/1.1 ", answer.code, " ", answer.reason, "\r\nContent-Type: ", answer.type,
                   "\r\nContent-Length: ", answer.body.size(), "\r\nConnection: close\r\n\r\n");
  if (method != "HEAD") bytes += answer.body;
  SendInTime(connection, bytes);
  return answer.code;
}

void MetricsServer::Http::SendInTime(mg_connection* connection, absl::string_view bytes) const {
  const absl::Duration deadline = clock_->Monotonic() + answer_patience_;
  while (!bytes.empty() && clock_->Monotonic() < deadline) {
    const absl::string_view next = bytes.substr(0, kWriteBytes);
    const int sent = mg_write(connection, next.data(), next.size());
    if (sent <= 0) return;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
}

MetricsServer::MetricsServer(std::unique_ptr<Http> http) : http_(std::move(http)) {}

MetricsServer::~MetricsServer() = default;

absl::StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Start(
    const MetricsServerOptions& options, Page page) {
  auto http = std::make_unique<Http>(options, std::move(page));
  if (absl::Status listens = http->Listen(options); !listens.ok()) return listens;
  std::unique_ptr<MetricsServer> server(new MetricsServer(std::move(http)));
  const size_t colon = options.address.rfind(':');
  server->address_ = absl::StrCat(options.address.substr(0, colon), ":", server->http_->port());
  return server;
}

}  // namespace muster::telemetry
