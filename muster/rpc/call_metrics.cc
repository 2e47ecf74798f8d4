// SPDX-License-Identifier: Apache-2.0
#include "muster/rpc/call_metrics.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "muster/telemetry/catalogue.h"

namespace muster::rpc {
namespace {

using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::InterceptorBatchMethods;
using grpc::experimental::ServerRpcInfo;

// Of one call: it lives as long as the call's context.
class Interceptor final : public grpc::experimental::Interceptor {
 public:
  Interceptor(std::string method, const telemetry::Histograms<2>* durations, base::Clock* clock)
      : method_(std::move(method)),
        durations_(durations),
        clock_(clock),
        began_(clock->Monotonic()) {}

  // A call whose client has gone may end without a status. A server also makes ready for calls that
  // never come.
  ~Interceptor() override {
    if (has_come_) Observe(absl::StatusCode::kCancelled);
  }

  void Intercept(InterceptorBatchMethods* methods) override {
    has_come_ = true;
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_STATUS)) {
      Observe(static_cast<absl::StatusCode>(methods->GetSendStatus().error_code()));
    }
    methods->Proceed();
  }

 private:
  void Observe(absl::StatusCode code) {
    if (!began_.has_value()) return;
    durations_->With({method_, absl::StatusCodeToString(code)})
        .Observe(clock_->Monotonic() - *began_);
    began_.reset();
  }

  const std::string method_;
  const telemetry::Histograms<2>* const durations_;  // not owned
  base::Clock* const clock_;                         // not owned
  bool has_come_ = false;
  std::optional<absl::Duration> began_;  // monotonic; nullopt: it is measured
};

class Factory final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  Factory(std::vector<std::string> services, telemetry::Registry* metrics, base::Clock* clock)
      : services_(std::move(services)),
        durations_(metrics, telemetry::kRpcCallDuration),
        clock_(clock) {}

  Interceptor* CreateServerInterceptor(ServerRpcInfo* info) override {
    return new Interceptor(NameOf(info->method()), &durations_, clock_);
  }

 private:
  // "muster.v1.BatchService/GetBatch".
  std::string NameOf(const char* path) const {
    if (path == nullptr) return telemetry::kOther;
    const absl::string_view method = absl::StripPrefix(path, "/");
    const absl::string_view service = method.substr(0, method.find('/'));
    const bool is_ours = std::find(services_.begin(), services_.end(), service) != services_.end();
    return is_ours ? std::string(method) : telemetry::kOther;
  }

  const std::vector<std::string> services_;
  const telemetry::Histograms<2> durations_;
  base::Clock* const clock_;  // not owned
};

}  // namespace

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> CallMetrics(
    std::vector<std::string> services, telemetry::Registry* metrics, base::Clock* clock) {
  return std::make_unique<Factory>(std::move(services), metrics, clock);
}

}  // namespace muster::rpc
