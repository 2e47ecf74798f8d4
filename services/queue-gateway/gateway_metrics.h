// SPDX-License-Identifier: Apache-2.0

// GatewayMetrics: what a gateway records of each request.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/queue/queue_store.h"
#include "muster/telemetry/registry.h"
#include "services/queue-gateway/auth/request.h"
#include "services/queue-gateway/auth/verdict.h"
#include "services/queue-gateway/http/message.h"

namespace muster::queue_gateway {

// The label value of requests without an operation that is known.
inline constexpr absl::string_view kNoOperation = "none";
inline constexpr absl::string_view kPreflightOperation = "preflight";

// "put_message" …
absl::string_view NameOf(auth::Operation operation);

// Thread-safe.
class GatewayMetrics {
 public:
  // `registry` is not owned and outlives the metrics; null: nothing is recorded.
  explicit GatewayMetrics(telemetry::Registry* registry);

  // Whether anything is recorded: else the caller need not read a clock.
  bool records() const { return records_; }
  void Answered(absl::string_view operation, const http::Reply& reply, absl::Duration took) const;
  void Throttled(const queue::QueueId& queue) const;
  void Refused(const auth::Verdict& verdict) const;

 private:
  const bool records_;
  const telemetry::Counters<2> requests_;
  const telemetry::Histograms<1> durations_;
  const telemetry::Counters<1> throttled_;
  const telemetry::Counters<1> auth_failures_;
};

}  // namespace muster::queue_gateway
