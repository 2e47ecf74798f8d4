// SPDX-License-Identifier: Apache-2.0

// Client: the rival's side of NATS JetStream, on nats.c alone. Any failure ends the program.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "nats/nats.h"

namespace rival {

// A message that was fetched and not acknowledged yet. Its connection outlives it.
class Message {
 public:
  Message(natsConnection* connection, natsMsg* message)
      : connection_(connection), message_(message) {}
  ~Message() { natsMsg_Destroy(message_); }
  Message(Message&& other) noexcept : connection_(other.connection_), message_(other.message_) {
    other.message_ = nullptr;
  }
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;

  absl::string_view data() const;
  uint64_t sequence() const;  // in its stream
  // Does not wait for the server: when the acknowledgement is lost, the message comes again.
  void Ack();

 private:
  natsConnection* const connection_;
  natsMsg* message_;
};

// A durable pull consumer that speaks the server's own protocol, because natsSubscription_Fetch of
// libnats 3.4 writes behind its list when messages of an earlier fetch come late. Not thread-safe.
class Consumer {
 public:
  // The server always has an open request for `batch` messages, so that it sends a stored message
  // at once.
  Consumer(natsConnection* connection, const char* stream, int batch);
  ~Consumer();
  Consumer(const Consumer&) = delete;
  Consumer& operator=(const Consumer&) = delete;

  // Returns the messages that have arrived, at most `batch`. Waits up to `patience_ms` for the
  // first one.
  std::vector<Message> Fetch(int64_t patience_ms);

 private:
  void Pull();
  // Returns false when no more messages of this fetch can come.
  bool Next(int64_t patience_ms, std::vector<Message>* messages);

  natsConnection* const connection_;
  const std::string pull_;
  const std::string wish_;
  const int batch_;
  natsInbox* inbox_ = nullptr;
  natsSubscription* subscription_ = nullptr;
  int awaited_ = 0;  // messages of the open request that have not come yet
};

// A connection. Not thread-safe; each worker has its own.
class Client {
 public:
  // At most `window` messages are published and not acknowledged at any time.
  Client(const std::string& url, int64_t window);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // A work-queue stream on files, of one subject, with one durable consumer.
  void MakeStream(const char* name, const char* subject);
  Consumer Consume(const char* stream, int batch);

  // Returns as soon as there is room in the window.
  void Publish(const char* subject, absl::string_view data);
  // Waits until all published messages are stored.
  void AwaitStored();

  natsConnection* connection() { return connection_; }

 private:
  natsConnection* connection_ = nullptr;
  jsCtx* jetstream_ = nullptr;
};

// Ends the program unless `status` is OK.
void Check(natsStatus status, absl::string_view what);

}  // namespace rival
