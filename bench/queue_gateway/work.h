// SPDX-License-Identifier: Apache-2.0

// What the connections of the load do: Work says what the next request is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/queue_gateway/connection.h"
#include "bench/queue_gateway/signed_request.h"

namespace muster::gateway_bench {

struct Scale {
  int connections = 64;
  int64_t messages = 100'000;
  std::string prefix = "load";  // of the queues: "load-0" and so on
  int queues = 1;
  int text_bytes = 1024;
  int get = 32;  // messages of a get
};

// Used by one thread.
class Work {
 public:
  virtual ~Work() = default;
  // The next request of a connection that has none under way; nullopt: there are no more for it.
  // Ones that begin something new are paced, those that go on are not.
  virtual std::optional<Request> Begin(int connection) = 0;
  virtual std::optional<Request> GoOn(int connection) = 0;
  // Ends the process if the reply is none that may come.
  virtual void OnReply(int connection, const Reply& reply) = 0;
  // How many messages one beginning is about.
  virtual int messages_of_begin() const { return 1; }
  // Messages that are done with.
  virtual int64_t done() const = 0;
};

// Creates the queues.
class CreateWork final : public Work {
 public:
  explicit CreateWork(const Scale& scale) : scale_(scale) {}
  std::optional<Request> Begin(int connection) override;
  std::optional<Request> GoOn(int) override { return std::nullopt; }
  void OnReply(int connection, const Reply& reply) override;
  int64_t done() const override { return done_; }

 private:
  const Scale scale_;
  int begun_ = 0;
  int64_t done_ = 0;
};

// Puts messages of noise, one at a time, into the queues in turn.
class PutWork final : public Work {
 public:
  explicit PutWork(const Scale& scale);
  std::optional<Request> Begin(int connection) override;
  std::optional<Request> GoOn(int) override { return std::nullopt; }
  void OnReply(int connection, const Reply& reply) override;
  int64_t done() const override { return done_; }

 private:
  const Scale scale_;
  std::vector<std::string> bodies_;
  int64_t begun_ = 0;
  int64_t done_ = 0;
};

// Each connection gets messages from the queues in turn, and deletes them one by one.
class TakeWork final : public Work {
 public:
  explicit TakeWork(const Scale& scale);
  std::optional<Request> Begin(int connection) override;
  std::optional<Request> GoOn(int connection) override;
  void OnReply(int connection, const Reply& reply) override;
  int messages_of_begin() const override { return scale_.get; }
  int64_t done() const override { return done_; }

 private:
  struct Held {
    std::string path;
    std::string receipt;
  };
  struct Taker {
    std::string queue;
    std::vector<Held> held;
    bool is_deleting = false;  // the request under way
  };

  const Scale scale_;
  std::vector<Taker> takers_;
  int64_t begun_ = 0;  // messages that were asked for
  int64_t gets_ = 0;
  int64_t done_ = 0;
};

}  // namespace muster::gateway_bench
