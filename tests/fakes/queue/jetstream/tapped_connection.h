// TappedConnection: a connection that shows a test each request before it is sent.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "muster/nats/connection.h"

namespace muster::queue::jetstream {

// Thread-safe where the tap is.
class TappedConnection final : public nats::Connection {
 public:
  using Tap = std::function<void(absl::string_view subject)>;

  TappedConnection(nats::Connection* connection, Tap tap)
      : Connection(connection->prompt()), connection_(connection), tap_(std::move(tap)) {}

  absl::Status Publish(const nats::Outgoing& message) override {
    return connection_->Publish(message);
  }
  absl::Status Flush(absl::Duration timeout) override { return connection_->Flush(timeout); }
  absl::StatusOr<std::vector<absl::StatusOr<nats::Incoming>>> RequestAll(
      absl::Span<const nats::Outgoing> requests, absl::Duration timeout) override {
    for (const nats::Outgoing& request : requests) tap_(request.subject);
    return connection_->RequestAll(requests, timeout);
  }
  absl::Status RequestMany(const nats::Outgoing& request, absl::Duration timeout,
                           absl::FunctionRef<bool(nats::Incoming)> take) override {
    return connection_->RequestMany(request, timeout, take);
  }
  absl::StatusOr<std::unique_ptr<Subscription>> Subscribe(const std::string& subject,
                                                          MessageHandler handler) override {
    return connection_->Subscribe(subject, std::move(handler));
  }
  bool connected() const override { return connection_->connected(); }
  int64_t reconnects() const override { return connection_->reconnects(); }
  int64_t max_payload() const override { return connection_->max_payload(); }

 private:
  nats::Connection* const connection_;
  const Tap tap_;
};

}  // namespace muster::queue::jetstream
