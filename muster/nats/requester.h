// SPDX-License-Identifier: Apache-2.0

// Requester: sends messages on a connection of nats.c, and waits for the replies to those that are
// requests. Where a reply arrives:
//
//   one request        in nats.c, which matches it by itself
//   several at once    at one subscription for all of them (PendingReplies)
//   one, many replies  in an inbox of its own (ReplyInbox), which the next such request takes over
//
// Only this folder includes this file.
#pragma once

#include <nats/nats.h>

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "muster/base/mutex.h"
#include "muster/nats/connection.h"
#include "muster/nats/subscription.h"

namespace muster::nats {

// Thread-safe once it has begun. Statuses are those of Connection.
class Requester {
 public:
  // `prompt`: as ConnectionOptions.
  explicit Requester(bool prompt);

  // Once, before all others. `connection` is not owned; close it only after End.
  absl::Status Begin(natsConnection* connection);
  // Ends the subscriptions; no request may be under way. Also where Begin failed or was not called.
  void End() ABSL_LOCKS_EXCLUDED(mu_);

  // Publishes the message. `reply`: the subject for answers; empty when none is wanted.
  absl::Status Send(const Outgoing& message, const std::string& reply);

  // As Connection has them.
  absl::Status Flush(absl::Duration timeout);
  absl::StatusOr<std::vector<absl::StatusOr<Incoming>>> RequestAll(
      absl::Span<const Outgoing> requests, absl::Duration timeout);
  absl::Status RequestMany(const Outgoing& request, absl::Duration timeout,
                           absl::FunctionRef<bool(Incoming)> take) ABSL_LOCKS_EXCLUDED(mu_);

  // As Connection has it.
  void LimitPatience(absl::Duration patience);

  // Requests that wait for an answer now.
  int64_t in_flight() const { return in_flight_; }

 private:
  // How long a call may wait that has `timeout`: none, or less, for a server that is away.
  // Unavailable: it need not begin.
  absl::StatusOr<absl::Duration> PatienceOf(const Outgoing& request, absl::Duration timeout) const;
  // Sends off the messages that nats.c has gathered.
  absl::Status SendOff(absl::Duration timeout);
  absl::StatusOr<Incoming> RequestOne(const Outgoing& request, absl::Duration timeout);
  absl::StatusOr<std::unique_ptr<ReplyInbox>> TakeReplyInbox() ABSL_LOCKS_EXCLUDED(mu_);
  bool IsConnected() const {
    return natsConnection_Status(connection_) == NATS_CONN_STATUS_CONNECTED;
  }

  const bool prompt_;
  natsConnection* connection_ = nullptr;  // not owned
  PendingReplies replies_;
  std::unique_ptr<CallbackSubscription> heard_replies_;
  std::atomic<int64_t> in_flight_{0};
  // When requests cease to wait for a server that is away: nanoseconds of the real clock's
  // Monotonic, or for ever.
  static constexpr int64_t kForEver = std::numeric_limits<int64_t>::max();
  std::atomic<int64_t> patient_until_{kForEver};

  base::Mutex mu_;
  std::vector<std::unique_ptr<ReplyInbox>> inboxes_ ABSL_GUARDED_BY(mu_);  // not in use
};

}  // namespace muster::nats
