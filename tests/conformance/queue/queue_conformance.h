// SPDX-License-Identifier: Apache-2.0

// The conformance suite of the QueueStore seam. It uses an engine only through queue_store.h, reads
// its traits, and skips the tests of abilities that they do not promise.
//
// In an engine's test, within this namespace:
//
//   class MyHarness final : public EngineHarness { … };
//   INSTANTIATE_TEST_SUITE_P(MyEngine, QueueConformanceTest,
//                            ::testing::Values([]() -> std::unique_ptr<EngineHarness> {
//                              return std::make_unique<MyHarness>();
//                            }));
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "muster/queue/queue_store.h"
#include "tests/fakes/base/fake_clock.h"

namespace muster::queue::conformance {

// Makes the engine under test. One harness per test; it owns the engine and its data.
class EngineHarness {
 public:
  virtual ~EngineHarness() = default;

  // Opens a new, empty engine on `clock`, which outlives the harness.
  virtual QueueStore* Start(base::Clock* clock) = 0;
  // Closes the engine and opens it again on the same data. The store that Start or Restart returned
  // before is invalid afterwards.
  virtual QueueStore* Restart() = 0;
  // Does so after an orderly restart of the server of the engine, where it has one.
  virtual QueueStore* RestartServer() { return Restart(); }
  // Lets time pass, also for an engine with a clock other than `clock`.
  virtual void Advance(base::FakeClock* clock, absl::Duration by) { clock->Advance(by); }
};

using EngineFactory = std::function<std::unique_ptr<EngineHarness>()>;

// Referenced here, so that the linker keeps files that contain only tests.
bool LinkAttemptTests();
bool LinkContentTests();
bool LinkJoinTests();
bool LinkLeaseTests();
bool LinkReclaimTests();
bool LinkRestartTests();
bool LinkScanTests();
bool LinkWaitTests();
inline const bool kAllTestsAreLinked = LinkAttemptTests() && LinkContentTests() &&
                                       LinkJoinTests() && LinkLeaseTests() && LinkReclaimTests() &&
                                       LinkRestartTests() && LinkScanTests() && LinkWaitTests();

// Helpers in terms of messages and their bodies; the queue is "acme/work". A helper that cannot do
// its work fails the test.
class QueueConformanceTest : public ::testing::TestWithParam<EngineFactory> {
 protected:
  QueueConformanceTest();

  const Traits& traits() const { return store_->traits(); }
  void Restart() { store_ = harness_->Restart(); }
  void RestartServer() { store_ = harness_->RestartServer(); }
  void Advance(absl::Duration by) { harness_->Advance(&clock_, by); }

  PutResult Put(const std::string& body);
  PutResult Put(NewMessage message);
  std::vector<PutResult> PutAll(std::vector<NewMessage> messages);

  std::vector<Message> Receive(int max_messages = 1, absl::Duration visibility = kVisibility);
  Message ReceiveOne(absl::Duration visibility = kVisibility);
  std::vector<std::string> ReceiveBodies(int max_messages = 32);
  std::vector<std::string> PeekBodies(int max_messages = 32);

  absl::Status Delete(const Receipt& receipt);
  absl::StatusOr<UpdateResult> Update(UpdateRequest request);
  // Gives the message back, to be visible after `delay`.
  absl::StatusOr<UpdateResult> Release(const Receipt& receipt,
                                       absl::Duration delay = absl::ZeroDuration());
  absl::StatusOr<int> BeginAttempt(const Receipt& receipt);
  absl::Status DeadLetter(const Receipt& receipt, const std::string& reason);
  std::vector<std::string> PoisonBodies();
  QueueStats Stats();
  QueueExtent Extent();
  // All that a scan shows from this position on, asked for in pages of `page`.
  std::vector<StoredMessage> Scan(uint64_t from = 0, int page = 2);
  // Reclaims the queue, and receives all that is in it, in the order of its positions.
  std::vector<Message> ReclaimAll();

  static constexpr absl::Duration kVisibility = absl::Seconds(30);
  const QueueId queue_{"acme", "work"};

  base::FakeClock clock_;
  std::unique_ptr<EngineHarness> harness_;
  QueueStore* store_;  // owned by harness_
};

}  // namespace muster::queue::conformance
