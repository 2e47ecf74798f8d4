// SPDX-License-Identifier: Apache-2.0
#include "bench/queue_bench/engine.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "bench/queue_bench/bodies.h"
#include "bench/queue_bench/check.h"
#include "muster/queue/rocksdb/rocksdb_queue_store.h"

namespace muster::queue_bench {
namespace {

// Longer than any step holds a message.
constexpr absl::Duration kVisibility = absl::Minutes(10);

// Adds the receipts of up to `count` messages.
void Receive(queue::QueueStore& store, const queue::QueueId& queue, int count,
             std::vector<queue::Receipt>& receipts) {
  auto received = store.Receive(queue, {count, kVisibility});
  Check(received.status());
  if (received->empty()) Die(absl::StrCat("queue '", queue.ToString(), "' has run dry"));
  for (queue::Message& message : *received) {
    if (message.body.size() != kBodyBytes) Die("the engine: a body is not whole");
    receipts.push_back(std::move(message.receipt));
  }
}

}  // namespace

Engine::Engine(std::string directory) : directory_(std::move(directory)) { Open(); }

Engine::~Engine() = default;

void Engine::Open() {
  const queue::rocksdb::Options options{.holders_in_process = true};
  auto opened = queue::rocksdb::RocksDbQueueStore::Open(directory_, options);
  Check(opened.status());
  store_ = *std::move(opened);
}

void Engine::Close() { store_.reset(); }

EngineSide::EngineSide(const Engine* engine, std::vector<queue::QueueId> queues)
    : engine_(engine), queues_(std::move(queues)), next_take_(queues_.size() / 2) {
  for (const queue::QueueId& queue : queues_) Check(engine_->store().CreateQueue(queue, {}));
}

void EngineSide::Put(int /*caller*/, std::vector<std::string> bodies) {
  std::vector<queue::NewMessage> messages(bodies.size());
  for (size_t i = 0; i < bodies.size(); ++i) messages[i].body = std::move(bodies[i]);
  Check(engine_->store().Put(queues_[next_put_++ % queues_.size()], messages).status());
}

void EngineSide::Take(int count) {
  const queue::QueueId& queue = queues_[next_take_++ % queues_.size()];
  queue::QueueStore& store = engine_->store();
  std::vector<queue::Receipt> receipts;
  receipts.reserve(static_cast<size_t>(count));
  while (receipts.size() < static_cast<size_t>(count)) {
    const int missing = count - static_cast<int>(receipts.size());
    Receive(store, queue, std::min(missing, store.traits().max_receive), receipts);
  }
  const auto deleted = store.Delete(queue, receipts);
  Check(deleted.status());
  for (const absl::Status& status : *deleted) Check(status);
}

}  // namespace muster::queue_bench
