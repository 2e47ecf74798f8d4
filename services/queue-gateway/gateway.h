// SPDX-License-Identifier: Apache-2.0

// Gateway: the Queue Storage API over a queue engine: one request in, one reply out.
//
//   request ─► address, version ─► operation ─► authentication ─► throttle ─► operations ─► reply
//
// OPTIONS, by which a browser asks what it may send, is answered before authentication.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/string_view.h"
#include "muster/base/clock.h"
#include "muster/base/worker_pool.h"
#include "muster/telemetry/registry.h"
#include "services/queue-gateway/auth/authenticator.h"
#include "services/queue-gateway/gateway_metrics.h"
#include "services/queue-gateway/http/message.h"
#include "services/queue-gateway/operations/call.h"
#include "services/queue-gateway/operations/delete_message.h"
#include "services/queue-gateway/operations/gatherer.h"
#include "services/queue-gateway/operations/long_polls.h"
#include "services/queue-gateway/operations/take_messages.h"
#include "services/queue-gateway/protocol/reply.h"
#include "services/queue-gateway/throttle/request_throttle.h"

namespace muster::queue_gateway {

// Thread-safe, and keeps nothing of a request that is answered.
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
        polls_(polls),
        // A remote engine has no sync to share, and may carry out a part of a call.
        gathers_(stores.queues->traits().joins_queues),
        puts_(std::make_unique<Puts>(PutAll(stores.queues))),
        deletes_(std::make_unique<Deletes>(DeleteAll(stores.queues))),
        late_(std::make_unique<base::WorkerPool>(kLateThreads)) {}

  // Answers before it returns, or soon after, where other requests are carried out with this one;
  // or when a message comes: a get of a queue with muster-longpoll. Whether the peer hangs up
  // meanwhile is watched. Keeps the gateway until it has answered.
  void Handle(http::Request request, std::shared_ptr<http::Exchange> exchange) const;
  // The same without waiting.
  http::Reply Handle(const http::Request& request) const;
  // Returns when all exchanges are answered; no request is handled any more. Call it when the HTTP
  // server has drained, before it is destroyed: the exchanges are its own.
  void Drain() { late_.reset(); }
  // The reply to what the HTTP server could not read, and has read `head` of; `status` is one of
  // those in server.h. Asks no store: pages of other origins cannot see it.
  http::Reply Refuse(int status, const http::Request& head) const;

 private:
  static constexpr int kLateThreads = 16;
  using Puts = operations::Gatherer<queue::NewMessage, absl::StatusOr<queue::PutResult>>;
  using Deletes = operations::Gatherer<queue::Receipt, operations::Deleted>;

  static Puts::Act PutAll(queue::QueueStore* queues);
  static Deletes::Act DeleteAll(queue::QueueStore* queues);

  // What goes with a request to its reply.
  struct Begun {
    protocol::ReplyContext context;
    absl::Duration at;            // of the monotonic clock
    absl::string_view operation;  // its name, as soon as it is known
    std::string account;          // whose pages may see the reply; "": that of none
  };
  // A request whose sender may do what it asks for, and its way back.
  struct Asked {
    operations::Call call;
    Begun begun;
    std::shared_ptr<http::Exchange> exchange;
  };

  Begun Begin(const http::Request& request) const;
  // Completes the call, which has its request, and says what it asks for. Or the reply that refuses
  // it, or that needs no authentication.
  std::variant<auth::Operation, http::Reply> Admit(operations::Call* call, Begun* begun) const;
  http::Reply ToReply(const operations::Call& call, const Begun& begun,
                      operations::Outcome outcome) const;
  // What every reply gets, those that refuse too.
  http::Reply Finish(const http::Request& request, const Begun& begun, http::Reply reply) const;
  void Answer(const Asked& asked, operations::Outcome outcome) const {
    asked.exchange->Answer(ToReply(asked.call, asked.begun, std::move(outcome)));
  }
  bool IsStale(const Asked& asked) const;
  void AnswerPut(const std::shared_ptr<const Asked>& asked) const;
  void AnswerDelete(const std::shared_ptr<const Asked>& asked) const;
  void AnswerWhenThere(const std::shared_ptr<const Asked>& asked) const;
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

  const bool gathers_;
  const std::unique_ptr<Puts> puts_;
  const std::unique_ptr<Deletes> deletes_;
  // For deletes that have to look at the store once more. Last: its tasks use the others.
  std::unique_ptr<base::WorkerPool> late_;
};

}  // namespace muster::queue_gateway
