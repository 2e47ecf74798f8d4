// SPDX-License-Identifier: Apache-2.0

// TappedConnection: a connection that shows a test each request before it is sent, and what became
// of each pull.
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

// Thread-safe where the taps are.
class TappedConnection final : public nats::Connection {
 public:
  using Tap = std::function<void(absl::string_view subject)>;
  using PullTap = std::function<void(const absl::Status& pulled)>;

  TappedConnection(nats::Connection* connection, Tap tap, PullTap pull_tap = nullptr)
      : Connection(connection->prompt()),
        connection_(connection),
        tap_(std::move(tap)),
        pull_tap_(std::move(pull_tap)) {}

  absl::Status Publish(const nats::Outgoing& message) override {
    return connection_->Publish(message);
  }
  absl::Status Flush(absl::Duration timeout) override { return connection_->Flush(timeout); }
  absl::StatusOr<std::vector<absl::StatusOr<nats::Incoming>>> RequestAll(
      absl::Span<const nats::Outgoing> requests, absl::Duration timeout) override {
    // One by one, so that a tap can hold the next one back.
    std::vector<absl::StatusOr<nats::Incoming>> answers;
    for (const nats::Outgoing& request : requests) {
      tap_(request.subject);
      auto answer = connection_->RequestAll({&request, 1}, timeout);
      if (!answer.ok()) return answer.status();
      answers.push_back(std::move(answer->front()));
    }
    return answers;
  }
  absl::Status RequestMany(const nats::Outgoing& request, absl::Duration timeout,
                           absl::FunctionRef<bool(nats::Incoming)> take) override {
    const absl::Status pulled = connection_->RequestMany(request, timeout, take);
    if (pull_tap_) pull_tap_(pulled);
    return pulled;
  }
  absl::StatusOr<std::unique_ptr<Subscription>> Subscribe(const std::string& subject,
                                                          MessageHandler handler) override {
    return connection_->Subscribe(subject, std::move(handler));
  }
  bool connected() const override { return connection_->connected(); }
  int64_t reconnects() const override { return connection_->reconnects(); }
  int64_t times_back() const override { return connection_->times_back(); }
  int64_t max_payload() const override { return connection_->max_payload(); }

 private:
  nats::Connection* const connection_;
  const Tap tap_;
  const PullTap pull_tap_;
};

}  // namespace muster::queue::jetstream
