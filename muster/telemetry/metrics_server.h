// MetricsServer: answers GET /metrics over HTTP with a page of text, for Prometheus.
//
// It is made to be forgotten: a few threads of its own, no more connections than it has room for,
// and no peer keeps it busy. Each connection is for one answer; one that asks slowly, or reads
// slowly, is cut off.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/telemetry/registry.h"

namespace muster::telemetry {

// Connections that are answered at a time, each by a thread: two Prometheus servers and a person.
inline constexpr int kServerThreads = 3;
// Connections that wait for such a thread, and again as many in the kernel's queue.
inline constexpr int kWaitingConnections = 16;
// For the request to arrive, and for the answer to be taken. Prometheus gives up after 10 seconds.
inline constexpr absl::Duration kPeerPatience = absl::Seconds(5);

struct MetricsServerOptions {
  std::string address;  // HOST:PORT; port 0: one that is free
  int threads = kServerThreads;
  absl::Duration patience = kPeerPatience;
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
