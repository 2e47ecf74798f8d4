// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/operations/gatherer.h"

#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"

namespace muster::queue_gateway::operations {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;
using ::testing::SizeIs;
using Answer = absl::StatusOr<std::string>;

// Gathers texts. The engine keeps what each call to it was given, stands still while it is told to,
// and refuses what a queue was given with a text that it is to refuse.
class GathererTest : public ::testing::Test {
 protected:
  void Add(const std::string& queue, const std::string& text, bool is_stale = false) {
    const auto done = [this, text](const Answer& answer) {
      base::MutexLock lock(&mu_);
      answers_[text] = answer.ok() ? *answer : std::string(answer.status().message());
      changed_.NotifyAll();
    };
    gatherer_.Add({"sally", queue}, text, done, [is_stale] { return is_stale; });
  }
  void AwaitAnswer(const std::string& text) {
    base::MutexLock lock(&mu_);
    while (!answers_.contains(text)) changed_.Wait(&mu_);
  }
  // Returns when the engine stands still in a call.
  std::jthread AddAndStandStill(const std::string& queue, const std::string& text) {
    base::MutexLock lock(&mu_);
    stands_still_ = true;
    std::jthread first([this, queue, text] { Add(queue, text); });
    while (calls_.empty() || calls_.back().front() != text) changed_.Wait(&mu_);
    return first;
  }
  // Whether the engine is called so often; waits for that, but not for ever.
  bool IsCalled(size_t times) {
    const absl::Duration deadline = base::RealClock()->Monotonic() + absl::Minutes(1);
    base::MutexLock lock(&mu_);
    while (calls_.size() < times) {
      if (base::RealClock()->WaitUntil(&changed_, &mu_, deadline)) break;
    }
    return calls_.size() >= times;
  }
  void GoOn() {
    base::MutexLock lock(&mu_);
    stands_still_ = false;
    changed_.NotifyAll();
  }
  std::vector<std::vector<std::string>> calls() {
    base::MutexLock lock(&mu_);
    return calls_;
  }

  std::map<std::string, std::string> answers() {
    base::MutexLock lock(&mu_);
    return answers_;
  }

  using Asked = queue::ForQueue<std::string>;
  std::vector<absl::StatusOr<std::vector<Answer>>> Act(absl::Span<const Asked> asked) {
    base::MutexLock lock(&mu_);
    calls_.emplace_back();
    for (const auto& [queue, texts] : asked) {
      calls_.back().insert(calls_.back().end(), texts.begin(), texts.end());
    }
    changed_.NotifyAll();
    while (stands_still_) changed_.Wait(&mu_);
    std::vector<absl::StatusOr<std::vector<Answer>>> answers;
    for (const auto& [queue, texts] : asked) answers.push_back(ActForQueue(texts));
    return answers;
  }
  static absl::StatusOr<std::vector<Answer>> ActForQueue(absl::Span<const std::string> texts) {
    std::vector<Answer> done;
    for (const std::string& text : texts) {
      if (text == "away") return absl::UnavailableError("away");
      if (text == "wrong") return absl::InvalidArgumentError("wrong");
      done.emplace_back("done " + text);
    }
    return done;
  }

  // The name of another queue, in the lane of this one or not.
  std::string QueueOfLane(const std::string& queue, bool is_same) {
    for (int i = 0;; ++i) {
      const std::string other = absl::StrCat("other-", i);
      if ((TextGatherer::LaneOf({"sally", other}) == TextGatherer::LaneOf({"sally", queue})) ==
          is_same) {
        return other;
      }
    }
  }

  using TextGatherer = Gatherer<std::string, Answer>;
  base::Mutex mu_;
  base::CondVar changed_;
  bool stands_still_ ABSL_GUARDED_BY(mu_) = true;
  std::vector<std::vector<std::string>> calls_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, std::string> answers_ ABSL_GUARDED_BY(mu_);
  TextGatherer gatherer_{[this](absl::Span<const Asked> asked) { return Act(asked); }};
};

TEST_F(GathererTest, ActsAtOnceForWhoComesAlone) {
  GoOn();
  Add("a", "1");
  Add("a", "2");
  EXPECT_THAT(calls(), ElementsAre(ElementsAre("1"), ElementsAre("2")));
  EXPECT_THAT(answers(), ElementsAre(Pair("1", "done 1"), Pair("2", "done 2")));
}

TEST_F(GathererTest, DoesTogetherWhatComesMeanwhileAndHoldsNoThreadForIt) {
  const std::jthread first = AddAndStandStill("a", "1");
  Add("a", "2");
  Add("a", "3");
  GoOn();
  AwaitAnswer("3");
  EXPECT_THAT(calls(), ElementsAre(ElementsAre("1"), ElementsAre("2", "3")));
}

TEST_F(GathererTest, SharesACallAmongQueues) {
  const std::jthread first = AddAndStandStill("a", "1");
  const std::string b = QueueOfLane("a", /*is_same=*/true);
  for (const std::string text : {"2", "3"}) Add("a", text);
  Add(b, "4");
  Add("a", "5");
  GoOn();
  AwaitAnswer("4");
  EXPECT_THAT(calls(), ElementsAre(ElementsAre("1"), ElementsAre("2", "3", "5", "4")));
  EXPECT_THAT(answers(), ElementsAre(Pair("1", "done 1"), Pair("2", "done 2"), Pair("3", "done 3"),
                                     Pair("4", "done 4"), Pair("5", "done 5")));
}

TEST_F(GathererTest, FailsNoQueueForWhatIsAskedOfAnother) {
  {
    const std::jthread first = AddAndStandStill("a", "1");
    Add("a", "2");
    Add(QueueOfLane("a", /*is_same=*/true), "away");
    Add("a", "3");
    GoOn();
  }
  EXPECT_THAT(answers(), ElementsAre(Pair("1", "done 1"), Pair("2", "done 2"), Pair("3", "done 3"),
                                     Pair("away", "away")));
}

TEST_F(GathererTest, LetsNoLaneWaitForAnother) {
  const std::jthread first = AddAndStandStill("a", "1");
  const std::jthread other([this] { Add(QueueOfLane("a", /*is_same=*/false), "2"); });
  EXPECT_TRUE(IsCalled(2)) << "while the first call stands still";
  EXPECT_THAT(calls(), ElementsAre(ElementsAre("1"), ElementsAre("2")));
  GoOn();
}

TEST_F(GathererTest, TakesNoMoreThanTheEngine) {
  {
    const std::jthread first = AddAndStandStill("a", "1");
    for (size_t i = 0; i <= kMaxGathered; ++i) Add("a", "2");
    GoOn();
  }
  EXPECT_THAT(calls(), ElementsAre(SizeIs(1), SizeIs(kMaxGathered), SizeIs(1)));
}

TEST_F(GathererTest, FailsNobodyForWhatAnotherAsks) {
  {
    const std::jthread first = AddAndStandStill("a", "1");
    for (const std::string text : {"2", "wrong", "3"}) Add("a", text);
    GoOn();
  }
  EXPECT_THAT(answers(), ElementsAre(Pair("1", "done 1"), Pair("2", "done 2"), Pair("3", "done 3"),
                                     Pair("wrong", "wrong")));
}

TEST_F(GathererTest, DoesNothingTwiceOfWhichItIsNotKnownWhetherItWasDone) {
  {
    const std::jthread first = AddAndStandStill("a", "1");
    for (const std::string text : {"2", "away"}) Add("a", text);
    GoOn();
  }
  EXPECT_THAT(calls(), SizeIs(2));
  EXPECT_THAT(answers(), ElementsAre(Pair("1", "done 1"), Pair("2", "away"), Pair("away", "away")));
}

TEST_F(GathererTest, DropsWhatNobodyWaitsForAnyMore) {
  {
    const std::jthread first = AddAndStandStill("a", "1");
    Add("a", "2", /*is_stale=*/true);
    Add("a", "3");
    GoOn();
  }
  const std::string b = QueueOfLane("a", /*is_same=*/false);
  {
    const std::jthread first = AddAndStandStill(b, "4");
    Add(b, "5", /*is_stale=*/true);
    GoOn();
  }
  Add(b, "6");
  EXPECT_THAT(answers(), ElementsAre(Pair("1", "done 1"), Pair("3", "done 3"), Pair("4", "done 4"),
                                     Pair("6", "done 6")));
}

}  // namespace
}  // namespace muster::queue_gateway::operations
