// SPDX-License-Identifier: Apache-2.0

// Gateway: the Queue Storage API over a queue engine: one request in, one reply out.
//
//   request ─► address, version ─► operation ─► authentication ─► throttle ─► operations ─► reply
//
// OPTIONS, by which a browser asks what it may send, is answered before authentication.
#pragma once

#include <memory>
#include <string>
#include <variant>

#include "absl/strings/string_view.h"
#include "muster/base/clock.h"
#include "muster/telemetry/registry.h"
#include "services/queue-gateway/auth/authenticator.h"
#include "services/queue-gateway/gateway_metrics.h"
#include "services/queue-gateway/http/message.h"
#include "services/queue-gateway/operations/call.h"
#include "services/queue-gateway/operations/long_polls.h"
#include "services/queue-gateway/operations/take_messages.h"
#include "services/queue-gateway/protocol/reply.h"
#include "services/queue-gateway/throttle/request_throttle.h"

namespace muster::queue_gateway {

// Thread-safe, and keeps nothing of a request.
class Gateway {
 public:
  // Nothing is owned. `throttle` counts the requests of callers that may do what they ask.
  // `metrics` may be null. `polls` has the gets that wait; null: none waits.
  Gateway(const auth::Authenticator* authenticator, throttle::RequestThrottle* throttle,
          const operations::Stores& stores, telemetry::Registry* metrics = nullptr,
          operations::LongPolls* polls = nullptr)
      : authenticator_(authenticator),
        throttle_(throttle),
        stores_(stores),
        metrics_(metrics),
        polls_(polls) {}

  // Answers at once, or when a message comes: a get of a queue with muster-longpoll. Whether the
  // peer hangs up meanwhile is watched.
  void Handle(const http::Request& request, const std::shared_ptr<http::Exchange>& exchange) const;
  // The same without waiting.
  http::Reply Handle(const http::Request& request) const;
  // The reply to what the HTTP server could not read, and has read `head` of; `status` is one of
  // those in server.h. Asks no store: pages of other origins cannot see it.
  http::Reply Refuse(int status, const http::Request& head) const;

 private:
  // What goes with a request to its reply.
  struct Begun {
    protocol::ReplyContext context;
    absl::Duration at;            // of the monotonic clock
    absl::string_view operation;  // its name, as soon as it is known
    std::string account;          // whose pages may see the reply; "": that of none
  };
  // A request whose sender may do what it asks for, and what that is.
  struct Admitted {
    operations::Call call;
    auth::Operation operation;
  };

  Begun Begin(const http::Request& request) const;
  // Or the reply that refuses it, or that needs no authentication.
  std::variant<Admitted, http::Reply> Admit(const http::Request& request, Begun* begun) const;
  http::Reply Run(const Admitted& admitted, const Begun& begun) const;
  http::Reply ToReply(const operations::Call& call, const Begun& begun,
                      operations::Outcome outcome) const;
  // What every reply gets, those that refuse too.
  http::Reply Finish(const http::Request& request, const Begun& begun, http::Reply reply) const;
  void AnswerWhenThere(const operations::Call& call, const Begun& begun, const operations::Get& get,
                       const std::shared_ptr<http::Exchange>& exchange) const;
  // An empty account is one that is not there: no page may call it.
  http::Reply AnswerPreflight(const http::Request& request, const std::string& account,
                              const protocol::ReplyContext& context) const;
  auth::Verdict Authenticate(const operations::Call& call, auth::Operation operation) const;
  // For a reply to a page of another origin.
  void AddCorsHeaders(const http::Request& request, const std::string& account,
                      http::Reply* reply) const;

  const auth::Authenticator* const authenticator_;  // not owned
  throttle::RequestThrottle* const throttle_;       // not owned
  const operations::Stores stores_;
  const GatewayMetrics metrics_;
  operations::LongPolls* const polls_;  // not owned
};

}  // namespace muster::queue_gateway
