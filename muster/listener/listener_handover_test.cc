// SPDX-License-Identifier: Apache-2.0

// Messages for another listener: two listeners on one queue, such as an old and a new processor
// during the upgrade of a mesh.
#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/fakes/base/let_others_run.h"
#include "tests/fakes/listener/listener_fixture.h"

namespace muster::listener {
namespace {

using ::testing::SizeIs;

class ListenerHandoverTest : public ListenerTest {
 protected:
  // Works on messages that begin with its version, leaves the others alone, and records each
  // message that it took.
  class VersionedSubscriber final : public Subscriber {
   public:
    VersionedSubscriber(ListenerHandoverTest* test, std::string version)
        : test_(test), version_(std::move(version)) {}

    void OnMessages(absl::Span<Delivery> deliveries, DeliveryContext& context) override {
      for (Delivery& delivery : deliveries) {
        if (!context.Begin(delivery).ok()) continue;
        const std::string& body = delivery.message->body;
        test_->Note(absl::StrCat(version_, " takes ", body, "#", delivery.attempt));
        const std::string wanted = body.substr(0, 2);
        context.Settle(delivery, wanted == version_ ? Ok() : ForOthers(wanted));
      }
    }

   private:
    ListenerHandoverTest* const test_;
    const std::string version_;
  };

  std::unique_ptr<QueueListener> MakeListener(const std::string& version) {
    options_.partitions = partitions_;
    options_.settle_linger = absl::ZeroDuration();
    options_.instance = version;
    auto created = QueueListener::Create(
        options_, events_,
        [this, version]() -> absl::StatusOr<std::unique_ptr<Subscriber>> {
          return std::make_unique<VersionedSubscriber>(this, version);
        },
        &store_, &bus_, &clock_);
    EXPECT_TRUE(created.ok()) << created.status();
    return *std::move(created);
  }

  // Starts a listener and waits until it has made its first check and sleeps.
  std::unique_ptr<QueueListener> StartIdle(const std::string& version) {
    const int looks = store_.calls(Verb::kStats);
    auto listener = MakeListener(version);
    EXPECT_TRUE(listener->Start().ok());
    store_.AwaitCalls(Verb::kStats, looks + 1);
    return listener;
  }

  // Passes time in steps shorter than any delay. Time stands still while a message is leased or
  // requested: no lease runs out, however slow the listeners' threads are.
  void PassTimeAtRestUntil(const std::vector<QueueListener*>& listeners,
                           const std::function<bool()>& done) {
    const auto rests = [](QueueListener* listener) {
      return listener->QueryState().unsettled_messages == 0;
    };
    while (!done()) {
      if (std::all_of(listeners.begin(), listeners.end(), rests)) {
        clock_.Advance(absl::Milliseconds(10));
      }
      base::LetOthersRun();
    }
  }
  void PassTime(absl::Duration time, const std::vector<QueueListener*>& listeners) {
    const absl::Duration end = clock_.Monotonic() + time;
    PassTimeAtRestUntil(listeners, [&] { return clock_.Monotonic() >= end; });
  }

  int Takes(const std::string& version) {
    int takes = 0;
    for (const std::string& note : notes()) takes += absl::StartsWith(note, version) ? 1 : 0;
    return takes;
  }
};

TEST_F(ListenerHandoverTest, GivesAnotherThatFitsItsTurnAtOnceWithoutASafetyCheck) {
  options_.safety_check_interval = absl::Hours(24);
  auto unfit = StartIdle("v2");
  auto fit = StartIdle("v1");
  Put("v1 item");
  ASSERT_TRUE(unfit->StartListener(1).ok());
  AwaitNotes(1);
  ASSERT_EQ(notes()[0], "v2 takes v1 item#1");
  // By its own schedule the other listener would look tomorrow at the earliest.
  const absl::Duration put_back_at = clock_.Monotonic();
  PassTimeAtRestUntil({unfit.get(), fit.get()},
                      [&] { return !store_.deleted(partitions_[0]).empty(); });
  EXPECT_EQ(notes().back(), "v1 takes v1 item#1") << "nothing was charged";
  EXPECT_LT(clock_.Monotonic() - put_back_at, absl::Hours(1));
  EXPECT_GE(fit->counters().wakeups_push, 1);
  EXPECT_EQ(fit->counters().wakeups_safety, 0);
}

// Once the listener's task has left, only a wake-up can make the listener look.
TEST_F(ListenerHandoverTest, DoesNotComeForWhatItHasPutBackItself) {
  options_.safety_check_interval = absl::Hours(24);
  auto unfit = StartIdle("v2");
  Put("v1 item");
  ASSERT_TRUE(unfit->StartListener(1).ok());
  PassTimeAtRestUntil({unfit.get()}, [&] { return unfit->QueryState().active_dequeue_tasks == 0; });
  const int takes = Takes("v2");
  EXPECT_GE(takes, 1);
  PassTime(absl::Seconds(40), {unfit.get()});
  EXPECT_EQ(Takes("v2"), takes);
  EXPECT_EQ(store_.Stats(partitions_[0])->ready, 1) << "whoever starts now finds it";
  EXPECT_EQ(unfit->counters().triggers_sent, takes) << "each time it was put back";
  EXPECT_EQ(unfit->counters().wakeups_push + unfit->counters().wakeups_scheduled, 0);
}

TEST_F(ListenerHandoverTest, LeavesToOthersWhatALikeOneAnnouncesOnceItKnowsTheKind) {
  options_.safety_check_interval = absl::Hours(24);
  auto unfit = StartIdle("v2");
  Put("v1 item");
  ASSERT_TRUE(unfit->StartListener(1).ok());
  PassTimeAtRestUntil({unfit.get()}, [&] { return unfit->QueryState().active_dequeue_tasks == 0; });
  PassTime(absl::Seconds(20), {unfit.get()});
  const int takes = Takes("v2");
  const auto announce = [&](const std::string& wanted) {
    ASSERT_TRUE(
        bus_.Publish({"another", bus::CloudQueueWorkDetectedTriggerEvent{.storage_account = "acme",
                                                                         .queue_name = "input",
                                                                         .messages = 1,
                                                                         .wanted = wanted}})
            .ok());
  };
  announce("v1");
  PassTime(absl::Seconds(1), {unfit.get()});
  EXPECT_EQ(Takes("v2"), takes);
  announce("v3");
  AwaitNotes(takes + 1);
  EXPECT_EQ(Takes("v2"), takes + 1) << "it cannot know before it has seen one";
}

TEST_F(ListenerHandoverTest, BringsEveryMessageToTheOneVersionThatFitsAmongOthersThatAreBusyToo) {
  auto first = StartIdle("v1");
  auto second = StartIdle("v2");
  auto third = StartIdle("v3");
  for (int i = 0; i < 60; ++i) Put(absl::StrCat("v", 1 + i % 3, " item ", i));
  Fire(60);
  PassTimeAtRestUntil({first.get(), second.get(), third.get()},
                      [&] { return store_.deleted(partitions_[0]).size() == 60; });
  EXPECT_THAT(store_.deleted(partitions_[0]), SizeIs(60));
  for (const std::string& note : notes()) EXPECT_TRUE(absl::EndsWith(note, "#1")) << note;
  EXPECT_EQ(store_.Stats(partitions_[0])->poison, 0);
}

TEST_F(ListenerHandoverTest, LooksMoreAndMoreSeldomAtWhatNobodyFits) {
  options_.max_attempts = 2;
  auto unfit = StartIdle("v2");
  Put("v1 item");
  Fire();
  // A busy listener looks as soon as the message is visible.
  options_.mode = DispatchMode::kPull;
  auto busy = StartIdle("v3");
  PassTime(absl::Minutes(5), {unfit.get(), busy.get()});
  const int takes = Takes("v2") + Takes("v3");
  // 8 takes while the delay grows, then one for each 20 s or more.
  EXPECT_GE(takes, 8);
  EXPECT_LE(takes, 8 + 15);
  for (const std::string& note : notes()) EXPECT_TRUE(absl::EndsWith(note, "#1")) << note;
  EXPECT_EQ(store_.Stats(partitions_[0])->stored(), 1);
}

// The store is so slow that a listener can look at what it put back no faster than it comes again:
// what was put later came behind all of them, over and over.
TEST_F(ListenerHandoverTest, ComesToNewWorkWithinSecondsBehindThousandsThatItLeavesToOthers) {
  constexpr int kOthers = 2'000;
  options_.safety_check_interval = absl::Hours(24);
  options_.max_dequeue_tasks = 1;
  store_.SetAfterHook([&](Verb verb, const queue::QueueId&) {
    if (verb == Verb::kBeginAttempt) clock_.Advance(absl::Milliseconds(10));
  });
  auto listener = StartIdle("v2");
  for (int i = 0; i < kOthers; ++i) Put("v1 item");
  Fire(kOthers);
  PassTimeAtRestUntil({listener.get()}, [&] { return Takes("v2") >= kOthers; });
  PassTime(absl::Seconds(10), {listener.get()});
  for (int i = 0; i < 5; ++i) Put("v2 item");
  Fire(5);
  const absl::Duration put = clock_.Monotonic();
  PassTimeAtRestUntil({listener.get()}, [&] { return store_.deleted(partitions_[0]).size() == 5; });
  EXPECT_LT(clock_.Monotonic() - put, absl::Seconds(2));
  ASSERT_TRUE(listener->Stop(absl::InfiniteDuration()).ok());
}

TEST_F(ListenerHandoverTest, WorksOnWhatFitsWhileOthersWait) {
  options_.safety_check_interval = absl::Hours(24);
  auto listener = StartIdle("v2");
  for (int i = 0; i < 40; ++i) Put(absl::StrCat("v1 item ", i));
  for (int i = 0; i < 40; ++i) Put(absl::StrCat("v2 item ", i));
  Fire(80);
  // Time stands still, so the delayed v1 items do not come back before the v2 items.
  store_.AwaitDeleted(partitions_[0], 40);
  ASSERT_TRUE(listener->Stop(absl::InfiniteDuration()).ok());
  EXPECT_EQ(listener->counters().messages_done, 40);
}

}  // namespace
}  // namespace muster::listener
