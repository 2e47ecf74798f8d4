// SPDX-License-Identifier: Apache-2.0

// MetricsServer: answers over HTTP, for Prometheus and for probes:
//
//   GET /metrics   a page of text
//   GET /healthz   200 as long as the process serves
//   GET /readyz    200, or 503; one line says why
//
// It is made to be forgotten: a few threads of its own, no more connections than it has room for,
// and no peer keeps it busy. Each connection is for one answer; one that asks slowly, or reads
// slowly, is cut off.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/telemetry/registry.h"

namespace muster::telemetry {

// Connections that are answered at a time, each by a thread. Each of a few dozen peers that connect
// and ask nothing holds one up for kRequestPatience, and Prometheus gives up after 10 seconds.
inline constexpr int kServerThreads = 16;
// Connections that wait for such a thread, and again as many in the kernel's queue.
inline constexpr int kWaitingConnections = 64;
// For the request to arrive, and for a peer that takes nothing of its answer.
inline constexpr absl::Duration kRequestPatience = absl::Seconds(1);
// For the whole answer to be taken.
inline constexpr absl::Duration kAnswerPatience = absl::Seconds(5);

struct MetricsServerOptions {
  std::string address;  // HOST:PORT; port 0: one that is free
  int threads = kServerThreads;
  absl::Duration request_patience = kRequestPatience;
  absl::Duration answer_patience = kAnswerPatience;
  // Whether the process is ready: OK, or why it is not. Called by the server's threads, several at
  // a time. Null: it is ready as long as it serves.
  std::function<absl::Status()> readiness = nullptr;
  base::Clock* clock = base::RealClock();  // not owned
};

// Thread-safe.
class MetricsServer {
 public:
  // Called by the server's threads, several at a time.
  using Page = std::function<std::string(TextFormat)>;

  // Listens. Unavailable naming the address: it is in use, or not this machine's. The caller has
  // decided that others may reach it: there is no TLS and no access control here.
  static absl::StatusOr<std::unique_ptr<MetricsServer>> Start(const MetricsServerOptions& options,
                                                              Page page);
  // Cuts off running answers, and waits for the threads.
  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  // HOST:PORT, with the port that was picked.
  const std::string& address() const { return address_; }

 private:
  class Http;
  explicit MetricsServer(std::unique_ptr<Http> http);

  const std::unique_ptr<Http> http_;
  std::string address_;
};

}  // namespace muster::telemetry
