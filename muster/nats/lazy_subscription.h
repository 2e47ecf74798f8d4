// SPDX-License-Identifier: Apache-2.0

// LazySubscription: the subscription of a bus to its subjects over core NATS. It begins with the
// first subscriber of the bus and ends with the bus. So a process that only publishes receives
// nothing. Because the subscription never ends earlier, no subscriber can come to wait for itself.
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
  // Runs on a thread of the connection. An error says why the message is not valid for this bus.
  using Take = std::function<absl::Status(const Incoming&)>;

  // `connection` is not owned and outlives this object. `kind` is for the log: "triggers".
  LazySubscription(Connection* connection, std::vector<std::string> subjects, std::string kind,
                   Take take);
  // Waits for a running `take` to return.
  ~LazySubscription();

  // Receives messages from now on or, without a connection, from when there is one. Waits for the
  // server to have the subscription, at most `limit`. A second call does nothing. Errors as for
  // Connection::Subscribe.
  absl::Status Begin(absl::Duration limit) ABSL_LOCKS_EXCLUDED(mu_);

  // The number of invalid messages: from other programs, or from a newer muster.
  int64_t malformed() const { return malformed_; }

 private:
  void OnMessage(const Incoming& message) ABSL_LOCKS_EXCLUDED(mu_);

  Connection* const connection_;  // not owned
  const std::vector<std::string> subjects_;
  const std::string kind_;
  const Take take_;
  std::atomic<int64_t> malformed_{0};

  // Held while the subscription is made: other subscribers need it, too.
  base::Mutex mu_;
  std::vector<std::unique_ptr<Connection::Subscription>> subscriptions_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::nats
