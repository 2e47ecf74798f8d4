// SPDX-License-Identifier: Apache-2.0

// Gets that wait: which of them gets a message, when, and what frees them.
#include "services/queue-gateway/operations/long_polls.h"

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/os/temp_dir.h"
#include "muster/queue/rocksdb/rocksdb_queue_store.h"
#include "services/queue-gateway/operations/waking_store.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/base/let_others_run.h"

namespace muster::queue_gateway::operations {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class LongPollsTest : public ::testing::Test {
 protected:
  LongPollsTest() {
    queue::rocksdb::Options options;
    options.clock = &clock_;
    queues_ = *queue::rocksdb::RocksDbQueueStore::Open(folder_.path(), options);
    EXPECT_TRUE(queues_->CreateQueue(queue_, {}).ok());
    Start(kMaxWaiters);
  }

  void Start(int max_waiters) {
    polls_ = std::make_unique<LongPolls>(queues_.get(), &clock_, max_waiters);
    store_ = std::make_unique<WakingStore>(queues_.get(), polls_.get());
  }

  // `name` notes in answers_ what it got: "a,b", "" or "NOT_FOUND".
  LongPolls::Ticket Wait(const std::string& name, absl::Duration patience = absl::Minutes(10)) {
    return polls_->Wait(
        queue_, patience,
        [this] {
          return store_->Receive(queue_, {1, absl::Seconds(30)});
        },
        [this, name](const absl::StatusOr<std::vector<queue::Message>>& messages) {
          std::string got;
          if (!messages.ok()) got = absl::StatusCodeToString(messages.status().code());
          for (size_t i = 0; messages.ok() && i < messages->size(); ++i) {
            absl::StrAppend(&got, i == 0 ? "" : ",", (*messages)[i].body);
          }
          base::MutexLock lock(&mu_);
          answers_[name] = got;
          changed_.NotifyAll();
        });
  }

  queue::PutResult Put(const std::string& body, absl::Duration delay = absl::ZeroDuration()) {
    queue::NewMessage message;
    message.body = body;
    message.delay = delay;
    return store_->Put(queue_, {message})->front();
  }

  std::string AnswerTo(const std::string& name) {
    base::MutexLock lock(&mu_);
    while (!answers_.contains(name)) changed_.Wait(&mu_);
    return answers_[name];
  }
  size_t answers() {
    base::MutexLock lock(&mu_);
    return answers_.size();
  }

  const queue::QueueId queue_{"acct", "queue"};
  const os::TempDir folder_;
  base::FakeClock clock_;
  base::Mutex mu_;
  base::CondVar changed_;
  std::map<std::string, std::string> answers_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<queue::rocksdb::RocksDbQueueStore> queues_;
  std::unique_ptr<WakingStore> store_;
  std::unique_ptr<LongPolls> polls_;  // last: its rounds use the others
};

TEST_F(LongPollsTest, AnswersWhenAMessageIsPut) {
  Wait("first");
  Put("a");
  EXPECT_EQ(AnswerTo("first"), "a");
  EXPECT_EQ(polls_->waiters(), 0);
}

TEST_F(LongPollsTest, AnswersWhatCameBeforeTheWait) {
  Put("a");
  Wait("first");
  EXPECT_EQ(AnswerTo("first"), "a");
}

TEST_F(LongPollsTest, GivesOneMessageToExactlyOneOfAThousand) {
  for (int i = 0; i < 1000; ++i) Wait(absl::StrCat(i));
  Put("a");
  EXPECT_EQ(AnswerTo("0"), "a");  // who came first
  EXPECT_EQ(polls_->waiters(), 999);
  polls_->Drain();
  EXPECT_EQ(answers(), 1000u);
  EXPECT_EQ(AnswerTo("999"), "");
}

TEST_F(LongPollsTest, ServesAllInTheOrderInWhichTheyCame) {
  for (int i = 0; i < 20; ++i) Wait(absl::StrCat(i));
  for (int i = 0; i < 20; ++i) Put(absl::StrCat("m", i));
  for (int i = 0; i < 20; ++i) EXPECT_EQ(AnswerTo(absl::StrCat(i)), absl::StrCat("m", i));
}

TEST_F(LongPollsTest, AnswersWhenADelayOrALeaseIsOver) {
  Put("late", absl::Seconds(5));
  Wait("first");
  clock_.AwaitSleepers(1);
  while (clock_.NextDeadline() > clock_.Monotonic() + absl::Seconds(5)) base::LetOthersRun();
  clock_.Advance(absl::Seconds(5));
  EXPECT_EQ(AnswerTo("first"), "late");
  Wait("second");
  while (clock_.NextDeadline() > clock_.Monotonic() + absl::Seconds(30)) base::LetOthersRun();
  clock_.Advance(absl::Seconds(30));
  EXPECT_EQ(AnswerTo("second"), "late");
}

TEST_F(LongPollsTest, LooksAtEachQueueAtItsOwnTime) {
  constexpr int kQueues = 5;
  std::vector<LongPolls::Ticket> tickets;
  for (int i = kQueues; i > 0; --i) {
    const queue::QueueId queue{"acct", absl::StrCat("queue-", i)};
    ASSERT_TRUE(queues_->CreateQueue(queue, {}).ok());
    queue::NewMessage message;
    message.delay = i * absl::Seconds(5);
    ASSERT_TRUE(queues_->Put(queue, {message}).ok());
    tickets.push_back(polls_->Wait(
        queue, absl::Minutes(10),
        [this, queue] {
          return queues_->Receive(queue, {1, absl::Hours(1)});
        },
        [this, i](const absl::StatusOr<std::vector<queue::Message>>& messages) {
          base::MutexLock lock(&mu_);
          answers_[absl::StrCat(i)] = absl::StrCat(messages.ok() ? messages->size() : 0);
          changed_.NotifyAll();
        }));
  }
  const auto next_look = [this](absl::Duration at) {
    while (clock_.NextDeadline() != at) base::LetOthersRun();
  };
  const absl::Duration begun = clock_.Monotonic();
  next_look(begun + absl::Seconds(5));
  // The first in time goes away: its queue is looked at no more.
  polls_->Abandon(tickets.back());
  for (int i = 2; i <= kQueues; ++i) {
    next_look(begun + i * absl::Seconds(5));
    EXPECT_EQ(answers(), static_cast<size_t>(i - 2));
    clock_.Advance(begun + i * absl::Seconds(5) - clock_.Monotonic());
    EXPECT_EQ(AnswerTo(absl::StrCat(i)), "1");
  }
  EXPECT_EQ(polls_->waiters(), 0);
}

TEST_F(LongPollsTest, LooksAtManyQueuesTogetherNoMoreOftenThanAtFewer) {
  for (const int queues : {1, kLooksPerSecond, 2 * kLooksPerSecond, kMaxWaiters}) {
    EXPECT_LE(queues / absl::ToDoubleSeconds(LookInterval(static_cast<size_t>(queues))),
              kLooksPerSecond);
  }
  EXPECT_EQ(LookInterval(kLooksPerSecond), kLookInterval);
  // The store cannot tell when a message of these becomes visible: it does not know them.
  for (int i = 0; i < 2 * kLooksPerSecond; ++i) {
    polls_->Wait(
        {"acct", absl::StrCat("unknown", i)}, absl::Minutes(10),
        [] { return std::vector<queue::Message>(); },
        [](const absl::StatusOr<std::vector<queue::Message>>&) {});
  }
  polls_->WakeAll();
  while (clock_.NextDeadline() != clock_.Monotonic() + 2 * kLookInterval) base::LetOthersRun();
}

TEST_F(LongPollsTest, AnswersWhenAMessageIsGivenBack) {
  Put("a");
  Wait("first");
  EXPECT_EQ(AnswerTo("first"), "a");
  Put("b");
  const queue::Message held = store_->Receive(queue_, {1, absl::Seconds(30)})->front();
  Wait("second");
  ASSERT_TRUE(store_->Update(queue_, {{held.receipt, absl::ZeroDuration(), {}}})->front().ok());
  EXPECT_EQ(AnswerTo("second"), "b");
}

TEST_F(LongPollsTest, AnswersNothingWhenTheTimeIsUp) {
  Wait("first", absl::Seconds(20));
  clock_.AwaitSleepers(1);
  clock_.Advance(absl::Seconds(20));
  EXPECT_EQ(AnswerTo("first"), "");
  EXPECT_EQ(polls_->waiters(), 0);
}

TEST_F(LongPollsTest, AnswersThatTheQueueIsGone) {
  Wait("first");
  ASSERT_TRUE(store_->DeleteQueue(queue_).ok());
  EXPECT_EQ(AnswerTo("first"), "NOT_FOUND");
}

TEST_F(LongPollsTest, ForgetsAClientThatHungUp) {
  const LongPolls::Ticket gone = Wait("gone");
  Wait("second");
  polls_->Abandon(gone);
  Put("a");
  EXPECT_EQ(AnswerTo("second"), "a");
  EXPECT_EQ(polls_->waiters(), 0);
  EXPECT_EQ(answers(), 1u);
  polls_->Abandon(gone);
}

TEST_F(LongPollsTest, GivesBackWhatItFoundForAClientThatHungUpMeanwhile) {
  LongPolls::Ticket ticket = 0;
  base::Mutex mu;
  base::CondVar changed;
  bool is_known = false, has_hung_up = false;
  ticket = polls_->Wait(
      queue_, absl::Minutes(10),
      [&] {
        // The client hangs up while the round is at work for it.
        base::MutexLock lock(&mu);
        while (!is_known) changed.Wait(&mu);
        polls_->Abandon(ticket);
        polls_->Abandon(ticket);
        EXPECT_EQ(polls_->waiters(), 0) << "it is still served";
        has_hung_up = true;
        changed.NotifyAll();
        return queues_->Receive(queue_, {1, absl::Hours(1)});
      },
      [](const absl::StatusOr<std::vector<queue::Message>>&) { ADD_FAILURE() << "it has gone"; });
  Put("a");
  {
    base::MutexLock lock(&mu);
    is_known = true;
    changed.NotifyAll();
    while (!has_hung_up) changed.Wait(&mu);
  }
  Wait("second");
  EXPECT_EQ(AnswerTo("second"), "a");
}

TEST_F(LongPollsTest, AnswersAtOnceWhereTooManyWait) {
  Start(2);
  Wait("1");
  Wait("2");
  EXPECT_EQ(Wait("3"), 0u);
  EXPECT_EQ(AnswerTo("3"), "");
  EXPECT_EQ(polls_->waiters(), 2);
}

TEST_F(LongPollsTest, AnswersAllWhenItDrains) {
  Wait("first");
  polls_->Drain();
  EXPECT_EQ(AnswerTo("first"), "");
  EXPECT_EQ(Wait("second"), 0u);
  EXPECT_EQ(AnswerTo("second"), "");
}

// Each put and each get reads the metadata of its queue.
TEST_F(LongPollsTest, LooksForNoMessageWhenMetadataAreRead) {
  std::atomic<int> receives = 0;
  polls_->Wait(
      queue_, absl::Minutes(10),
      [&] {
        ++receives;
        return store_->Receive(queue_, {1, absl::Seconds(30)});
      },
      [](const absl::StatusOr<std::vector<queue::Message>>&) {});
  while (receives == 0) base::LetOthersRun();
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(store_->GetMetadata(queue_).ok());
    base::LetOthersRun();
  }
  EXPECT_EQ(receives.load(), 1);
  polls_->Drain();  // what counts ends before what it counts in
}

TEST_F(LongPollsTest, WakesTheQueueThatAMessageIsMovedTo) {
  const queue::QueueId other{"acct", "other"};
  ASSERT_TRUE(queues_->CreateQueue(other, {}).ok());
  const auto put = *store_->Put(other, std::vector<queue::NewMessage>(1));
  Wait("first");
  queue::MoveRequest request;
  request.receipt = put[0].receipt;
  request.cause = queue::Cause();
  ASSERT_TRUE(store_->Move(other, queue_, {request})->front().ok());
  EXPECT_EQ(AnswerTo("first"), "");
  EXPECT_EQ(queues_->Stats(queue_)->in_flight, 1);
}

}  // namespace
}  // namespace muster::queue_gateway::operations
