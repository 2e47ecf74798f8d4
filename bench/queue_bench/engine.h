// SPDX-License-Identifier: Apache-2.0

// The embedded engine, and the sides that use it.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "bench/queue_bench/side.h"
#include "muster/queue/queue_store.h"

namespace muster::queue_bench {

// A directory of the engine, opened as `muster run` opens it: all lease holders live in this
// process.
class Engine {
 public:
  explicit Engine(std::string directory);
  ~Engine();

  void Open();
  void Close();
  // Call it only while the engine is open.
  queue::QueueStore& store() const { return *store_; }

 private:
  const std::string directory_;
  std::unique_ptr<queue::QueueStore> store_;
};

// Puts the messages of each call into the next of its queues, in turn, and takes from the queue
// that is half a turn away: with many queues, it never takes from a queue that it has just used.
class EngineSide final : public Side {
 public:
  // Makes the queues. `engine` is not owned and outlives the side.
  EngineSide(const Engine* engine, std::vector<queue::QueueId> queues);

  void Put(int caller, std::vector<std::string> bodies) override;
  // Takes all messages of a call from one queue.
  void Take(int count) override;

 private:
  const Engine* const engine_;
  const std::vector<queue::QueueId> queues_;
  std::atomic<size_t> next_put_{0};
  size_t next_take_;
};

}  // namespace muster::queue_bench
