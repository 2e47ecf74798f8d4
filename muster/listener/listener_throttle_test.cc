// A store that takes only so many calls a second: publishers and consumers back off, and nothing is
// lost (req. 22, 52, 53).
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "muster/base/retry_policy.h"
#include "muster/queue/throttled_store.h"
#include "tests/fakes/listener/listener_fixture.h"

namespace muster::listener {
namespace {

class ListenerThrottleTest : public ListenerTest {
 protected:
  static constexpr double kTarget = 20;

  queue::ThrottledStore throttled_{&store_, kTarget, &clock_};
};

TEST_F(ListenerThrottleTest, RefusesWhatIsBeyondTheTargetAndSaysWhenToComeBack) {
  for (int i = 0; i < kTarget; ++i) ASSERT_TRUE(throttled_.Stats(partitions_[0]).ok());
  const absl::Status refused = throttled_.Stats(partitions_[0]).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  ASSERT_TRUE(base::RetryAfter(refused).has_value());
  EXPECT_EQ(*base::RetryAfter(refused), absl::Milliseconds(50));
  EXPECT_TRUE(throttled_.Stats({"acme", "another"}).ok()) << "each queue has a target of its own";
  clock_.Advance(absl::Milliseconds(50));
  EXPECT_TRUE(throttled_.Stats(partitions_[0]).ok());
  EXPECT_FALSE(throttled_.Stats(partitions_[0]).ok());
  EXPECT_FALSE(absl::IsResourceExhausted(throttled_.CreateQueue(partitions_[0], {})))
      << "administrators get through";
}

TEST_F(ListenerThrottleTest, LosesNothingOfThreeTimesTheTarget) {
  constexpr int kMessages = 200;
  constexpr int kPublishers = 3;
  listened_ = &throttled_;
  events_.on_error = [](const absl::Status&) {};
  Start();
  std::atomic<int> refused{0}, put{0};
  std::vector<std::thread> publishers;
  for (int publisher = 0; publisher < kPublishers; ++publisher) {
    publishers.emplace_back([&, publisher] {
      base::RetryPolicy retry(base::RetryOptions(), &clock_);
      for (int i = publisher; i < kMessages; i += kPublishers) {
        const auto result = retry.Run([&](const base::RetryAttempt&) {
          std::vector<queue::NewMessage> messages(1);
          messages[0].body = absl::StrCat("m", i);
          auto answer = throttled_.Put(partitions_[0], messages);
          if (base::RetryAfter(answer.status()).has_value()) ++refused;
          return answer;
        });
        ASSERT_TRUE(result.ok()) << result.status();
        ++put;
      }
    });
  }
  // Time stands still until they have gone beyond the target, however slow the machine is.
  while (refused == 0 && put < kMessages) std::this_thread::yield();
  PassTimeUntil([&] { return listener_->counters().messages_done == kMessages; });
  for (std::thread& publisher : publishers) publisher.join();
  FinishAsTimePasses();
  EXPECT_EQ(put, kMessages);
  EXPECT_GT(refused, 0) << "they never went beyond the target";
  EXPECT_EQ(store_.Stats(partitions_[0])->stored(), 0);
  EXPECT_EQ(listener_->counters().dead_letters, 0);
}

}  // namespace
}  // namespace muster::listener
