// SPDX-License-Identifier: Apache-2.0

// ConsumerInbox: where the server sends what the consumers of a store deliver. All consumers share
// one subscription, and so one thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "muster/base/mutex.h"
#include "muster/nats/connection.h"

namespace muster::stream::jetstream {

// Receives what one consumer delivers, and what the server says of its pulls.
class Receiver {
 public:
  virtual ~Receiver() = default;
  // On the inbox's thread, one call at a time; be quick.
  virtual void Take(const nats::Incoming& message) = 0;
  // The connection is back: what was on its way is lost. On another thread.
  virtual void OnReconnect() = 0;
};

// Thread-safe. Outlives its receivers' registrations.
class ConsumerInbox {
 public:
  // `connection` is not owned and outlives this object.
  explicit ConsumerInbox(nats::Connection* connection);
  ~ConsumerInbox();

  // Registers `receiver`, which is not owned, and returns the name for its consumer, new each time.
  absl::StatusOr<std::string> Register(Receiver* receiver) ABSL_LOCKS_EXCLUDED(subscribe_mu_, mu_);
  // Returns once the receiver is not called and never will be. Unknown names are fine.
  void Unregister(const std::string& consumer) ABSL_LOCKS_EXCLUDED(mu_);

  // Where a pull of this consumer asks for its messages.
  std::string ReplySubject(absl::string_view consumer) const;

 private:
  absl::Status Subscribe() ABSL_LOCKS_EXCLUDED(subscribe_mu_, mu_);
  void OnMessage(const nats::Incoming& message) ABSL_LOCKS_EXCLUDED(mu_);
  void OnReconnect() ABSL_LOCKS_EXCLUDED(mu_);

  nats::Connection* const connection_;  // not owned
  const std::string name_;              // with which consumers' names begin
  const std::string subject_;

  base::Mutex mu_;  // held while a receiver is called
  uint64_t last_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<std::string, Receiver*, std::less<>> receivers_ ABSL_GUARDED_BY(mu_);  // not owned

  base::Mutex subscribe_mu_;  // held while the subscription is made
  std::unique_ptr<nats::Connection::Following> following_ ABSL_GUARDED_BY(subscribe_mu_);
  std::unique_ptr<nats::Connection::Subscription> subscription_ ABSL_GUARDED_BY(subscribe_mu_);
};

}  // namespace muster::stream::jetstream
