// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/queue/queue_conformance.h"

#include <algorithm>
#include <utility>

#include "muster/queue/limits.h"

namespace muster::queue::conformance {
namespace {

std::vector<std::string> BodiesOf(const std::vector<Message>& messages) {
  std::vector<std::string> bodies;
  for (const Message& message : messages) bodies.push_back(message.body);
  return bodies;
}

// The value, or a failed test and an empty value.
template <typename T>
T Expect(absl::StatusOr<T> result) {
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *std::move(result) : T();
}

// The only element of a batch verb's answer.
template <typename T>
T ExpectOnly(absl::StatusOr<std::vector<T>> results) {
  if (!results.ok()) return T(results.status());
  EXPECT_EQ(results->size(), 1u);
  return results->front();
}

}  // namespace

QueueConformanceTest::QueueConformanceTest()
    : harness_(GetParam()()), store_(harness_->Start(&clock_)) {
  EXPECT_TRUE(store_->CreateQueue(queue_, {}).ok());
}

PutResult QueueConformanceTest::Put(const std::string& body) {
  NewMessage message;
  message.body = body;
  return Put(std::move(message));
}

PutResult QueueConformanceTest::Put(NewMessage message) {
  const std::vector<PutResult> results = PutAll({std::move(message)});
  return results.empty() ? PutResult() : results.front();
}

std::vector<PutResult> QueueConformanceTest::PutAll(std::vector<NewMessage> messages) {
  return Expect(store_->Put(queue_, messages));
}

std::vector<Message> QueueConformanceTest::Receive(int max_messages, absl::Duration visibility) {
  return Expect(store_->Receive(queue_, {max_messages, visibility}));
}

Message QueueConformanceTest::ReceiveOne(absl::Duration visibility) {
  const std::vector<Message> messages = Receive(1, visibility);
  EXPECT_EQ(messages.size(), 1u) << "no message was ready";
  return messages.empty() ? Message() : messages.front();
}

std::vector<std::string> QueueConformanceTest::ReceiveBodies(int max_messages) {
  return BodiesOf(Receive(max_messages));
}

std::vector<std::string> QueueConformanceTest::PeekBodies(int max_messages) {
  return BodiesOf(Expect(store_->Peek(queue_, max_messages)));
}

absl::Status QueueConformanceTest::Delete(const Receipt& receipt) {
  return ExpectOnly(store_->Delete(queue_, {receipt}));
}

absl::StatusOr<UpdateResult> QueueConformanceTest::Update(UpdateRequest request) {
  return ExpectOnly(store_->Update(queue_, {std::move(request)}));
}

absl::StatusOr<UpdateResult> QueueConformanceTest::Release(const Receipt& receipt,
                                                           absl::Duration delay) {
  UpdateRequest request;
  request.receipt = receipt;
  request.visibility = delay;
  request.attempt_ended = true;
  return Update(std::move(request));
}

absl::StatusOr<int> QueueConformanceTest::BeginAttempt(const Receipt& receipt) {
  return ExpectOnly(store_->BeginAttempt(queue_, {receipt}));
}

absl::Status QueueConformanceTest::DeadLetter(const Receipt& receipt, const std::string& reason) {
  DeadLetterRequest request;
  request.receipt = receipt;
  request.cause.reason = reason;
  request.cause.attempts = 3;
  request.cause.holder = "processor-1";
  request.cause.time = clock_.Now();
  return ExpectOnly(store_->DeadLetter(queue_, {request}));
}

std::vector<std::string> QueueConformanceTest::PoisonBodies() {
  std::vector<std::string> bodies;
  for (const PoisonMessage& message : Expect(store_->ListPoison(queue_, "", kMaxListPoison))) {
    bodies.push_back(message.body);
  }
  return bodies;
}

QueueStats QueueConformanceTest::Stats() { return Expect(store_->Stats(queue_)); }

std::vector<Message> QueueConformanceTest::ReclaimAll() {
  const absl::StatusOr<uint64_t> below = store_->Reclaim(queue_);
  EXPECT_TRUE(below.ok()) << below.status();
  std::vector<Message> all;
  uint64_t next = 0;
  for (std::vector<Message> some; !(some = Receive(3)).empty();) {
    for (Message& message : some) {
      if (message.position >= below.value_or(0)) {
        EXPECT_GE(message.position, next);
      }
      next = std::max(next, message.position + 1);
      all.push_back(std::move(message));
    }
  }
  std::sort(all.begin(), all.end(),
            [](const Message& a, const Message& b) { return a.position < b.position; });
  return all;
}

std::vector<StoredMessage> QueueConformanceTest::Scan(uint64_t from, int page) {
  std::vector<StoredMessage> all;
  for (;;) {
    const std::vector<StoredMessage> some = Expect(store_->Scan(queue_, from, page));
    if (some.empty()) return all;
    EXPECT_LE(some.size(), static_cast<size_t>(page));
    for (const StoredMessage& message : some) {
      EXPECT_GE(message.position, from);
      from = message.position + 1;
      all.push_back(message);
    }
  }
}

QueueExtent QueueConformanceTest::Extent() { return Expect(store_->Extent(queue_)); }

}  // namespace muster::queue::conformance
