// LazySubscription: what a bus hears of its subjects over core NATS, from its first subscriber on
// until its end. Who only publishes hears nothing; and as it never ends before the bus, no
// subscriber can come to wait for itself.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/base/mutex.h"
#include "muster/nats/connection.h"

namespace muster::nats {

// Thread-safe.
class LazySubscription {
 public:
  // Runs on a thread of the connection. An error says why the message is none for this bus.
  using Take = std::function<absl::Status(const Incoming&)>;

  // `connection` is not owned and outlives it. `kind` is for the log: "triggers".
  LazySubscription(Connection* connection, std::vector<std::string> subjects, std::string kind,
                   Take take);
  // Waits for a message that is being taken.
  ~LazySubscription();

  // Hears from now on, or, while there is no connection, as soon as there is one. Waits for the
  // server to know, at most `limit`. Again it does nothing. As Connection::Subscribe.
  absl::Status Begin(absl::Duration limit);

  // Messages that were none: from strangers, or from a newer muster.
  int64_t malformed() const { return malformed_; }

 private:
  void OnMessage(const Incoming& message);

  Connection* const connection_;  // not owned
  const std::vector<std::string> subjects_;
  const std::string kind_;
  const Take take_;
  std::atomic<int64_t> malformed_{0};

  // Held while the server is told: other subscribers need that subscription, too.
  base::Mutex mu_;
  std::vector<std::unique_ptr<Connection::Subscription>> subscriptions_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::nats
