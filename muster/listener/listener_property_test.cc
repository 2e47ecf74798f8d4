// SPDX-License-Identifier: Apache-2.0

// Random scripts of puts, triggers, faults, lost leases and passing time: in the end every message
// has the settlement that its handler chose, and the right number of tasks is left.
#include <atomic>
#include <functional>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/fakes/base/let_others_run.h"
#include "tests/fakes/listener/listener_fixture.h"

namespace muster::listener {
namespace {

using Kind = Settlement::Kind;

class ListenerPropertyTest : public ListenerTest, public ::testing::WithParamInterface<int> {
 protected:
  static constexpr int kSteps = 60;

  void SetUp() override {
    seed_ = static_cast<uint32_t>(GetParam()) * 2654435761u + 17;
    random_.seed(seed_);
    RecordProperty("seed", std::to_string(seed_));
    partitions_.clear();
    for (int i = 0; i <= Pick(3); ++i) partitions_.push_back({"acme", absl::StrCat("in-", i)});
    options_.mode = Pick(2) == 0 ? DispatchMode::kPull : DispatchMode::kPush;
    options_.max_attempts = 3;
    options_.max_dequeue_tasks = 1 + Pick(6);
    options_.max_unsettled_messages = 1 + Pick(40);
    handler_ = [this](Delivery& delivery, DeliveryContext&) { return Act(delivery); };
    on_given_up_ = [](const queue::Message& message, const queue::Cause&) {
      std::vector<queue::NewMessage> outputs(1);
      outputs[0].body = "dead " + message.body;
      return outputs;
    };
    events_.on_error = [](const absl::Status&) {};
    store_.SetHook([this](Verb verb, const queue::QueueId& queue) { return Fault(verb, queue); });
  }

  int Pick(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }

  // Returns the same fate for the same message and attempt, on any worker and at any time.
  static int Fate(const queue::Message& message, int attempt) {
    return static_cast<int>((std::hash<std::string>()(message.body) + 7919u * attempt) % 10);
  }

  Settlement Act(const Delivery& delivery) {
    switch (Fate(*delivery.message, delivery.attempt)) {
      case 0:
        return Outcome(Kind::kRetry, absl::Milliseconds(50));
      case 1:
        return Outcome(Kind::kUnset);
      case 2:
        return delivery.message->dequeue_count % 3 == 0
                   ? Ok({"ok " + delivery.message->body})
                   : Outcome(Kind::kDefer, absl::Milliseconds(200));
      case 3:
        return Outcome(Kind::kDead);
      case 4:
        throw std::runtime_error("by design");
      default:
        return Ok({"ok " + delivery.message->body});
    }
  }

  absl::Status Fault(Verb verb, const queue::QueueId& queue) {
    // The test's own puts must succeed.
    if (!faulty_ || (verb == Verb::kPut && !(queue == output_))) return absl::OkStatus();
    return ++fault_counter_ % 5 == 0 ? absl::UnavailableError("by design") : absl::OkStatus();
  }

  void Step() {
    const int partition = Pick(static_cast<int>(partitions_.size()));
    switch (Pick(8)) {
      case 0:
      case 1:
      case 2:
        for (int n = Pick(20); n >= 0; --n) Put(absl::StrCat("m", messages_++), partition);
        if (Pick(2) == 0) Fire(1 + Pick(20), partition);
        break;
      case 3:
        ASSERT_TRUE(listener_->StartListener(1 + Pick(3)).ok());
        break;
      case 4:
        faulty_ = !faulty_;
        break;
      case 5:
        store_.BreakLeases(partitions_[partition]);
        break;
      case 6:
        listener_->Pause();
        listener_->Resume();
        break;
      default:
        clock_.Advance(absl::Milliseconds(Pick(3000)));
    }
    EXPECT_LE(listener_->QueryState().active_dequeue_tasks, options_.max_dequeue_tasks);
  }

  // No trigger announces the work: a polling task or the safety check finds it.
  void IdleForYearsAndFindWork(int pollers) {
    for (int year = 0; year < 10; ++year) {
      clock_.Advance(absl::Hours(24 * 365));
      base::LetOthersRun();
    }
    Put(absl::StrCat("m", messages_++), Pick(static_cast<int>(partitions_.size())));
    PassTimeUntil([&] { return Settled() == messages_; }, absl::Milliseconds(200));
    PassTimeUntil([&] { return tasks() == pollers; }, absl::Milliseconds(200));
  }

  int Settled() {
    size_t settled = 0;
    for (const queue::QueueId& partition : partitions_) {
      settled += store_.deleted(partition).size() + store_.ListPoison(partition, "", 0)->size();
    }
    return static_cast<int>(settled);
  }

  uint32_t seed_ = 0;
  std::mt19937 random_;
  int messages_ = 0;
  std::atomic<bool> faulty_ = false;
  std::atomic<int> fault_counter_ = 0;
};

TEST_P(ListenerPropertyTest, SettlesEverythingByItsOutcomeAndKeepsTheRightPollers) {
  SCOPED_TRACE(absl::StrCat("seed ", seed_));
  Start();
  for (int step = 0; step < kSteps; ++step) Step();
  faulty_ = false;
  PassTimeUntil([&] { return Settled() == messages_; }, absl::Milliseconds(200));
  const int pollers = options_.mode == DispatchMode::kPull ? 1 : 0;
  PassTimeUntil([&] { return tasks() == pollers; }, absl::Milliseconds(200));
  IdleForYearsAndFindWork(pollers);
  ASSERT_TRUE(listener_->Stop(absl::InfiniteDuration()).ok());
  EXPECT_EQ(listener_->QueryState().unsettled_messages, 0);

  const std::vector<std::string> put = store_.put(output_);
  const std::set<std::string> told(put.begin(), put.end());
  std::set<std::string> once;
  for (const queue::QueueId& partition : partitions_) {
    for (const std::string& body : store_.deleted(partition)) {
      EXPECT_TRUE(once.insert(body).second) << body << " was settled twice";
      EXPECT_TRUE(told.contains("ok " + body)) << body << " was deleted without its output";
    }
    const auto poisoned = *store_.ListPoison(partition, "", 0);
    for (const queue::PoisonMessage& poison : poisoned) {
      EXPECT_TRUE(once.insert(poison.body).second) << poison.body << " was settled twice";
      EXPECT_TRUE(told.contains("dead " + poison.body)) << poison.body << " vanished silently";
      EXPECT_FALSE(poison.cause.reason.empty());
    }
  }
  EXPECT_EQ(static_cast<int>(once.size()), messages_);
}

INSTANTIATE_TEST_SUITE_P(Scripts, ListenerPropertyTest, ::testing::Range(0, 40));

}  // namespace
}  // namespace muster::listener
