// SPDX-License-Identifier: Apache-2.0
#include "muster/listener/ordered_listener.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/mutex.h"
#include "muster/base/status.h"
#include "muster/bus/local/local_buses.h"
#include "tests/fakes/base/let_others_run.h"
#include "tests/fakes/listener/memory_store.h"
#include "tests/fakes/os/no_more_threads.h"

namespace muster::listener {
namespace {

using ::testing::ElementsAre;
using testing::MemoryStore;
using testing::Verb;

Settlement As(Settlement::Kind kind, absl::Duration delay = absl::ZeroDuration()) {
  Settlement settlement;
  settlement.kind = kind;
  settlement.delay = delay;
  settlement.why = "because";
  return settlement;
}

// Messages are "KEY:N"; the handlers are lambdas, on real threads.
class OrderedListenerTest : public ::testing::Test {
 protected:
  using Handler = std::function<Settlement(const std::string& body, const Delivery&)>;

  class Scripted final : public Subscriber {
   public:
    explicit Scripted(OrderedListenerTest* test) : test_(test) {}
    void OnMessages(absl::Span<Delivery> deliveries, DeliveryContext& context) override {
      for (Delivery& delivery : deliveries) {
        if (!context.Begin(delivery).ok()) continue;
        const std::string& body = delivery.message->body;
        test_->Enter(body);
        Settlement settlement = test_->handler_(body, delivery);
        test_->Leave(body, settlement.kind == Settlement::Kind::kOk);
        context.Settle(delivery, std::move(settlement));
      }
    }

   private:
    OrderedListenerTest* const test_;
  };

  ~OrderedListenerTest() override { listener_.reset(); }

  static std::string KeyOf(const std::string& body) { return body.substr(0, body.find(':')); }

  // Outlives the listeners, as the records of a mesh do. Messages are their own items.
  class Holds final : public KeyHolds {
   public:
    explicit Holds(OrderedListenerTest* test) : test_(test) {}
    std::string ItemOf(const queue::Message& message) const override { return message.body; }
    absl::StatusOr<std::vector<Held>> Read(int partition, bool with_dead) override {
      std::set<std::string> dead;
      if (with_dead) {
        const auto poison =
            test_->store_.ListPoison(test_->queues_[static_cast<size_t>(partition)], "", 1000);
        MUSTER_RETURN_IF_ERROR(poison.status());
        for (const queue::PoisonMessage& one : *poison) dead.insert(one.body);
      }
      base::MutexLock lock(&mu_);
      std::vector<Held> all;
      for (const auto& [key, item] : held_) all.push_back({key, item, dead.contains(item)});
      return all;
    }
    absl::Status Hold(int, const std::string& key, const queue::Message& message) override {
      base::MutexLock lock(&mu_);
      if (refusals_ > 0) {
        --refusals_;
        changed_.NotifyAll();
        return absl::ResourceExhaustedError("too many keys");
      }
      held_[key] = message.body;
      changed_.NotifyAll();
      return absl::OkStatus();
    }
    absl::Status Release(int, const std::string& key, const std::string& item) override {
      base::MutexLock lock(&mu_);
      const auto found = held_.find(key);
      if (found != held_.end() && found->second == item) held_.erase(found);
      changed_.NotifyAll();
      return absl::OkStatus();
    }
    void AwaitHeld(size_t n) {
      base::MutexLock lock(&mu_);
      while (held_.size() != n) changed_.Wait(&mu_);
    }
    void RefuseNext(int n) {
      base::MutexLock lock(&mu_);
      refusals_ = n;
    }
    void AwaitRefused() {
      base::MutexLock lock(&mu_);
      while (refusals_ > 0) changed_.Wait(&mu_);
    }

   private:
    OrderedListenerTest* const test_;
    base::Mutex mu_;
    base::CondVar changed_;
    int refusals_ ABSL_GUARDED_BY(mu_) = 0;
    std::map<std::string, std::string> held_ ABSL_GUARDED_BY(mu_);
  };

  std::unique_ptr<OrderedListener> Make(int threads = 4) {
    ListenerOptions options;
    options.partitions = queues_;
    options.max_dequeue_tasks = threads;
    options.minimum_retry_delay = absl::Milliseconds(1);
    options.maximum_retry_delay = absl::Milliseconds(4);
    options.visibility = absl::Minutes(5);
    auto made = OrderedListener::Create(
        options, [](const queue::Message& message) { return KeyOf(message.body); },
        [this]() -> absl::StatusOr<std::unique_ptr<Subscriber>> {
          return std::make_unique<Scripted>(this);
        },
        &store_, &bus_, base::RealClock());
    EXPECT_TRUE(made.ok()) << made.status();
    if (holds_keys_) (*made)->SetHolds(&holds_);
    return *std::move(made);
  }
  void Start(int threads = 4) {
    listener_ = Make(threads);
    ASSERT_TRUE(listener_->Start().ok());
  }

  void Put(const std::vector<std::string>& bodies, size_t queue = 0) {
    std::vector<queue::NewMessage> messages;
    for (const std::string& body : bodies) messages.emplace_back().body = body;
    ASSERT_TRUE(store_.Put(queues_[queue], messages).ok());
    ASSERT_TRUE(bus_.Publish(bus::WorkDetected("me", "acme", queues_[queue].name, 1)).ok());
  }
  void PutMany(int keys, int each, size_t queue = 0) {
    std::vector<std::string> bodies;
    for (int n = 0; n < each; ++n) {
      for (int key = 0; key < keys; ++key) bodies.push_back(absl::StrCat("k", key, ":", n));
    }
    Put(bodies, queue);
  }

  void Enter(const std::string& body) {
    base::MutexLock lock(&mu_);
    EXPECT_TRUE(inside_.insert(KeyOf(body)).second) << body << " runs beside one of its key";
    calls_.push_back(body);
    most_inside_ = std::max(most_inside_, inside_.size());
    changed_.NotifyAll();
  }
  void Leave(const std::string& body, bool done) {
    base::MutexLock lock(&mu_);
    inside_.erase(KeyOf(body));
    if (done) done_.push_back(body);
    changed_.NotifyAll();
  }
  void AwaitDone(size_t n) {
    base::MutexLock lock(&mu_);
    while (done_.size() < n) changed_.Wait(&mu_);
  }
  void AwaitInside(size_t n) {
    base::MutexLock lock(&mu_);
    while (inside_.size() < n) changed_.Wait(&mu_);
  }
  // The calls of each key never go back to an earlier number.
  void ExpectOrder() {
    base::MutexLock lock(&mu_);
    std::map<std::string, int> last;
    for (const std::string& body : calls_) {
      const std::vector<std::string> parts = absl::StrSplit(body, ':');
      int n = 0;
      ASSERT_TRUE(absl::SimpleAtoi(parts[1], &n)) << body;
      EXPECT_GE(n, last[parts[0]]) << body;
      EXPECT_LE(n, last[parts[0]] + 1) << body;
      last[parts[0]] = n;
    }
  }

  const std::vector<queue::QueueId> queues_ = {{"acme", "work-in-0"}, {"acme", "work-in-1"}};
  MemoryStore store_{base::RealClock()};
  bus::local::LocalTriggerBus bus_;
  Handler handler_ = [](const std::string&, const Delivery&) { return As(Settlement::Kind::kOk); };
  base::Mutex mu_;
  base::CondVar changed_;
  std::set<std::string> inside_ ABSL_GUARDED_BY(mu_);
  size_t most_inside_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<std::string> calls_ ABSL_GUARDED_BY(mu_);
  std::vector<std::string> done_ ABSL_GUARDED_BY(mu_);
  bool holds_keys_ = false;
  Holds holds_{this};
  std::unique_ptr<OrderedListener> listener_;
};

TEST_F(OrderedListenerTest, ReadsNoPartitionThatItDoesNotOwn) {
  Put({"a:0"}, 0);
  Put({"b:0"}, 1);
  Start();
  listener_->Own(1);
  store_.AwaitDeleted(queues_[1], 1);
  EXPECT_TRUE(listener_->Stop(absl::InfiniteDuration()).ok());
  EXPECT_THAT(store_.deleted(queues_[0]), ElementsAre());
}

TEST_F(OrderedListenerTest, WorksOnEachKeyInOrder) {
  PutMany(20, 30);
  Start();
  listener_->Own(0);
  store_.AwaitDeleted(queues_[0], 600);
  listener_->Stop(absl::InfiniteDuration()).IgnoreError();
  ExpectOrder();
  base::MutexLock lock(&mu_);
  EXPECT_EQ(calls_.size(), 600u);
}

TEST_F(OrderedListenerTest, WorksOnSeveralKeysAtATime) {
  std::atomic<bool> open = false;
  handler_ = [&](const std::string&, const Delivery&) {
    open.wait(false);
    return As(Settlement::Kind::kOk);
  };
  Put({"a:0", "a:1", "b:0", "c:0"});
  Start(3);
  listener_->Own(0);
  AwaitInside(3);
  open = true;
  open.notify_all();
  store_.AwaitDeleted(queues_[0], 4);
  ExpectOrder();
  listener_.reset();
}

TEST_F(OrderedListenerTest, ARetryHoldsUpItsKeyAlone) {
  std::atomic<bool> mended = false;
  handler_ = [&](const std::string& body, const Delivery&) {
    return body == "bad:0" && !mended ? As(Settlement::Kind::kDefer, absl::Milliseconds(1))
                                      : As(Settlement::Kind::kOk);
  };
  Put({"bad:0", "bad:1", "a:0", "a:1", "b:0", "a:2"});
  Start();
  listener_->Own(0);
  store_.AwaitDeleted(queues_[0], 4);  // all of the others
  mended = true;
  store_.AwaitDeleted(queues_[0], 6);
  ExpectOrder();
  listener_.reset();
}

TEST_F(OrderedListenerTest, APoisonMessageIsSkippedAfterItsAttempts) {
  handler_ = [&](const std::string& body, const Delivery&) {
    return As(body == "bad:0" ? Settlement::Kind::kRetry : Settlement::Kind::kOk);
  };
  Put({"bad:0", "bad:1", "a:0"});
  Start();
  listener_->Own(0);
  store_.AwaitPoison(queues_[0], 1);
  store_.AwaitDeleted(queues_[0], 2);
  listener_->Stop(absl::InfiniteDuration()).IgnoreError();
  ExpectOrder();
  base::MutexLock lock(&mu_);
  EXPECT_EQ(std::count(calls_.begin(), calls_.end(), "bad:0"), 5);
}

TEST_F(OrderedListenerTest, ADeferredMessageIsChargedOnce) {
  std::atomic<int> calls = 0, attempt = 0;
  handler_ = [&](const std::string&, const Delivery& delivery) {
    attempt = delivery.attempt;
    return ++calls < 20 ? As(Settlement::Kind::kDefer, absl::Milliseconds(1))
                        : As(Settlement::Kind::kOk);
  };
  Put({"a:0"});
  Start();
  listener_->Own(0);
  store_.AwaitDeleted(queues_[0], 1);
  EXPECT_EQ(attempt, 1);
  listener_.reset();
}

TEST_F(OrderedListenerTest, TakesOverFromTheHeadWhateverTheDeadOwnerHeld) {
  PutMany(3, 5);
  // It held the first ten, and had worked on two of them when it died.
  const auto held = store_.Receive(queues_[0], {10, absl::Hours(1)});
  ASSERT_TRUE(held.ok());
  ASSERT_TRUE(store_.Delete(queues_[0], {{(*held)[0].receipt, (*held)[1].receipt}}).ok());
  Start();
  listener_->Own(0);
  store_.AwaitDeleted(queues_[0], 15);
  listener_->Stop(absl::InfiniteDuration()).IgnoreError();
  base::MutexLock lock(&mu_);
  EXPECT_EQ(calls_.size(), 13u);
  std::map<std::string, std::vector<std::string>> by_key;
  for (const std::string& body : calls_) by_key[KeyOf(body)].push_back(body);
  EXPECT_THAT(by_key["k0"], ElementsAre("k0:1", "k0:2", "k0:3", "k0:4"));
  EXPECT_THAT(by_key["k2"], ElementsAre("k2:0", "k2:1", "k2:2", "k2:3", "k2:4"));
}

TEST_F(OrderedListenerTest, BeginsAgainAtTheHeadWhenLeasesAreLost) {
  std::atomic<bool> broken = false;
  handler_ = [&](const std::string&, const Delivery&) {
    if (!broken.exchange(true)) store_.BreakLeases(queues_[0]);
    return As(Settlement::Kind::kOk);
  };
  PutMany(5, 20);
  Start();
  listener_->Own(0);
  store_.AwaitDeleted(queues_[0], 100);
  ExpectOrder();
  listener_.reset();
}

TEST_F(OrderedListenerTest, BeginsAgainAtTheHeadWhenASettlementFails) {
  std::atomic<int> left = 3;
  store_.SetMessageHooks(
      [&](Verb verb, const std::string& body) {
        if (verb != Verb::kDelete || body != "k1:2" || left-- <= 0) return absl::OkStatus();
        return absl::FailedPreconditionError("the lease was lost");
      },
      nullptr);
  PutMany(3, 6);
  Start();
  listener_->Own(0);
  store_.AwaitDeleted(queues_[0], 18);
  ExpectOrder();
  listener_.reset();
}

TEST_F(OrderedListenerTest, BeginsAgainAtTheHeadWhenSomethingComesBack) {
  // Put first, and there only later: as what is redriven, or given back by another reader.
  std::vector<queue::NewMessage> late(1);
  late[0].body = "late:0";
  late[0].delay = absl::Milliseconds(50);
  ASSERT_TRUE(store_.Put(queues_[0], late).ok());
  Start();
  listener_->Own(0);
  PutMany(3, 10);
  store_.AwaitDeleted(queues_[0], 31);
  ExpectOrder();
  listener_.reset();
}

TEST_F(OrderedListenerTest, HandsAPartitionOverInOrder) {
  handler_ = [](const std::string&, const Delivery& delivery) {
    return As(delivery.attempt == 1 && delivery.message->position % 7 == 0
                  ? Settlement::Kind::kRetry
                  : Settlement::Kind::kOk);
  };
  PutMany(10, 100);
  const auto other = Make();
  ASSERT_TRUE(other->Start().ok());
  Start();
  OrderedListener* owner = listener_.get();
  OrderedListener* next = other.get();
  owner->Own(0);
  for (size_t handed = 1; handed < 8; ++handed) {
    AwaitDone(handed * 100);
    std::atomic<bool> drained = false;
    owner->Drain(0, [&] {
      drained = true;
      drained.notify_all();
    });
    drained.wait(false);
    owner->Disown(0);
    next->Own(0);
    std::swap(owner, next);
  }
  store_.AwaitDeleted(queues_[0], 1000);
  ExpectOrder();
  listener_->Stop(absl::InfiniteDuration()).IgnoreError();
  other->Stop(absl::InfiniteDuration()).IgnoreError();
}

TEST_F(OrderedListenerTest, AnOwnerThatLostItsPartitionSettlesNothingOfIt) {
  std::atomic<bool> open = false;
  handler_ = [&](const std::string&, const Delivery&) {
    open.wait(false);
    return As(Settlement::Kind::kOk);
  };
  Put({"a:0", "a:1"});
  Start();
  listener_->Own(0);
  AwaitInside(1);
  listener_->Disown(0);
  open = true;
  open.notify_all();
  listener_->Stop(absl::InfiniteDuration()).IgnoreError();
  EXPECT_THAT(store_.deleted(queues_[0]), ElementsAre());
}

TEST_F(OrderedListenerTest, HoldsNoMoreThanItsBound) {
  std::atomic<bool> open = false;
  handler_ = [&](const std::string&, const Delivery&) {
    open.wait(false);
    return As(Settlement::Kind::kOk);
  };
  std::vector<std::string> bodies;
  for (size_t n = 0; n < 2 * kMaxHeldMessages; ++n)
    bodies.push_back(absl::StrCat("k", n % 256, ":", n / 256));
  Put(bodies);
  Start();
  listener_->Own(0);
  const auto received = [&] { return listener_->counters().messages_received; };
  while (received() < static_cast<int64_t>(kMaxHeldMessages)) base::LetOthersRun();
  EXPECT_LT(received(), static_cast<int64_t>(kMaxHeldMessages) + 32);
  open = true;
  open.notify_all();
  store_.AwaitDeleted(queues_[0], static_cast<int>(bodies.size()));
  ExpectOrder();
  listener_.reset();
}

// "bad" is given up at its first message until it is mended.
class HeldKeyTest : public OrderedListenerTest {
 protected:
  HeldKeyTest() {
    holds_keys_ = true;
    handler_ = [this](const std::string& body, const Delivery&) {
      return As(body == "bad:0" && !mended_ ? Settlement::Kind::kDead : Settlement::Kind::kOk);
    };
  }
  ~HeldKeyTest() override { listener_.reset(); }

  void Trigger() {
    ASSERT_TRUE(bus_.Publish(bus::WorkDetected("me", "acme", queues_[0].name, 1)).ok());
  }
  void Redrive() {
    ASSERT_EQ(store_.Redrive(queues_[0], {}, 1).value(), 1);
    Trigger();
  }
  std::vector<std::string> CallsOf(const std::string& key) {
    base::MutexLock lock(&mu_);
    std::vector<std::string> calls;
    std::copy_if(calls_.begin(), calls_.end(), std::back_inserter(calls),
                 [&](const std::string& body) { return KeyOf(body) == key; });
    return calls;
  }
  void Stop() { listener_->Stop(absl::InfiniteDuration()).IgnoreError(); }

  std::atomic<bool> mended_ = false;
};

TEST_F(HeldKeyTest, HoldsTheLaterMessagesOfAKeyAndNoOthers) {
  Put({"bad:0", "bad:1", "a:0", "a:1"});
  Start();
  listener_->Own(0);
  store_.AwaitPoison(queues_[0], 1);
  store_.AwaitDeleted(queues_[0], 2);
  // Also what is put when the key is held already.
  Put({"bad:2", "a:2"});
  store_.AwaitDeleted(queues_[0], 3);
  Stop();
  EXPECT_THAT(CallsOf("bad"), ElementsAre("bad:0"));
}

// A message before a withheld one, in one look, seemed to come late, so the listener began again at
// the head, and met the same look there, for ever.
TEST_F(HeldKeyTest, TakesAMessageBeforeAWithheldOneAtOnce) {
  Put({"bad:0", "bad:1", "a:0"});
  Start();
  listener_->Own(0);
  store_.AwaitPoison(queues_[0], 1);
  store_.AwaitDeleted(queues_[0], 1);
  listener_->Pause();
  const int64_t before = listener_->counters().messages_received;
  Put({"a:1", "bad:2", "a:2"});
  listener_->Resume();
  store_.AwaitDeleted(queues_[0], 3);
  EXPECT_EQ(listener_->counters().messages_received, before + 3);
  Stop();
  EXPECT_THAT(CallsOf("bad"), ElementsAre("bad:0"));
}

TEST_F(HeldKeyTest, GoesOnBehindTheDeadLetterOnceItIsReleased) {
  Put({"bad:0", "bad:1", "bad:2", "a:0"});
  Start();
  listener_->Own(0);
  store_.AwaitPoison(queues_[0], 1);
  store_.AwaitDeleted(queues_[0], 1);
  ASSERT_TRUE(holds_.Release(0, "bad", "bad:0").ok());
  Trigger();
  store_.AwaitDeleted(queues_[0], 3);
  Stop();
  EXPECT_THAT(CallsOf("bad"), ElementsAre("bad:0", "bad:1", "bad:2"));
}

TEST_F(HeldKeyTest, WorksOnARedrivenMessageBeforeTheLaterOnesOfItsKey) {
  Put({"bad:0", "bad:1", "bad:2", "a:0"});
  Start();
  listener_->Own(0);
  store_.AwaitPoison(queues_[0], 1);
  store_.AwaitDeleted(queues_[0], 1);
  mended_ = true;
  Redrive();
  store_.AwaitDeleted(queues_[0], 4);
  holds_.AwaitHeld(0);
  Stop();
  EXPECT_THAT(CallsOf("bad"), ElementsAre("bad:0", "bad:0", "bad:1", "bad:2"));
}

// As a broker does that can only put at the end.
TEST_F(HeldKeyTest, WorksFirstOnARedrivenMessageThatComesBackBehindTheLaterOnes) {
  Put({"bad:0", "bad:1", "bad:2", "a:0"});
  Start();
  listener_->Own(0);
  store_.AwaitPoison(queues_[0], 1);
  store_.AwaitDeleted(queues_[0], 1);
  mended_ = true;
  ASSERT_EQ(store_.PurgePoison(queues_[0]).value(), 1);
  Put({"bad:0"});
  store_.AwaitDeleted(queues_[0], 4);
  holds_.AwaitHeld(0);
  Stop();
  EXPECT_THAT(CallsOf("bad"), ElementsAre("bad:0", "bad:0", "bad:1", "bad:2"));
}

TEST_F(HeldKeyTest, StaysHeldIfTheRedrivenMessageIsGivenUpAgain) {
  Put({"bad:0", "bad:1", "a:0"});
  Start();
  listener_->Own(0);
  store_.AwaitPoison(queues_[0], 1);
  Redrive();
  AwaitDone(1);
  store_.AwaitPoison(queues_[0], 1);  // again
  Put({"a:1"});
  store_.AwaitDeleted(queues_[0], 2);
  Stop();
  EXPECT_THAT(CallsOf("bad"), ElementsAre("bad:0", "bad:0"));
}

TEST_F(HeldKeyTest, TheNextOwnerKnowsWhatIsHeld) {
  Put({"bad:0", "bad:1", "a:0"});
  Start();
  listener_->Own(0);
  store_.AwaitPoison(queues_[0], 1);
  store_.AwaitDeleted(queues_[0], 1);
  listener_->Disown(0);
  Stop();
  listener_ = Make();
  ASSERT_TRUE(listener_->Start().ok());
  listener_->Own(0);
  Put({"bad:2", "a:1"});
  store_.AwaitDeleted(queues_[0], 2);
  mended_ = true;
  Redrive();
  store_.AwaitDeleted(queues_[0], 5);
  Stop();
  EXPECT_THAT(CallsOf("bad"), ElementsAre("bad:0", "bad:0", "bad:1", "bad:2"));
}

// The owner held the key, and died before the message became a dead letter.
TEST_F(HeldKeyTest, TheNextOwnerFinishesWhatTheDeadOneHadGivenUp) {
  Put({"bad:0", "bad:1", "a:0"});
  queue::Message given_up;
  given_up.body = "bad:0";
  ASSERT_TRUE(holds_.Hold(0, "bad", given_up).ok());
  mended_ = true;
  Start();
  listener_->Own(0);
  store_.AwaitDeleted(queues_[0], 3);
  holds_.AwaitHeld(0);
  Stop();
  EXPECT_THAT(CallsOf("bad"), ElementsAre("bad:0", "bad:1"));
}

// The redriven message had succeeded, and the owner died before it could let the key go on.
TEST_F(HeldKeyTest, TheNextOwnerLetsAKeyGoOnWhoseMessageIsSettled) {
  Put({"bad:1", "a:0"});
  queue::Message settled;
  settled.body = "bad:0";
  ASSERT_TRUE(holds_.Hold(0, "bad", settled).ok());
  Start();
  listener_->Own(0);
  store_.AwaitDeleted(queues_[0], 2);
  holds_.AwaitHeld(0);
  Stop();
  EXPECT_THAT(CallsOf("bad"), ElementsAre("bad:1"));
}

TEST_F(HeldKeyTest, KeepsAMessageWhoseKeyCannotBeHeld) {
  holds_.RefuseNext(3);
  Put({"bad:0", "bad:1", "a:0"});
  Start();
  listener_->Own(0);
  holds_.AwaitRefused();
  store_.AwaitPoison(queues_[0], 1);
  holds_.AwaitHeld(1);
  Stop();
  const std::vector<std::string> calls = CallsOf("bad");
  EXPECT_EQ(std::count(calls.begin(), calls.end(), "bad:0"), 4);
  EXPECT_EQ(std::count(calls.begin(), calls.end(), "bad:1"), 0);
}

// What waits behind a held key takes none of the room that the other keys need.
TEST_F(HeldKeyTest, ALongQueueBehindAHeldKeyDoesNotHoldUpOthers) {
  std::vector<std::string> bodies = {"bad:0"};
  const int behind = static_cast<int>(kMaxHeldMessages) + 500;
  for (int n = 1; n <= behind; ++n) bodies.push_back(absl::StrCat("bad:", n));
  bodies.emplace_back("a:0");
  Put(bodies);
  Start();
  listener_->Own(0);
  store_.AwaitPoison(queues_[0], 1);
  store_.AwaitDeleted(queues_[0], 1);
  EXPECT_THAT(CallsOf("bad"), ElementsAre("bad:0"));
  mended_ = true;
  Redrive();
  store_.AwaitDeleted(queues_[0], behind + 2);
  Stop();
  ExpectOrder();
}

// `muster run` under a limit of threads had no worker, and waited for its batch for ever.
TEST_F(OrderedListenerTest, TellsWhenItemsWaitAndNoWorkerCanStart) {
  base::Mutex mu;
  base::CondVar told;
  std::vector<absl::StatusCode> codes;
  listener_ = Make();
  listener_->SetOnNoTask([&](const absl::Status& why) {
    base::MutexLock lock(&mu);
    codes.push_back(why.code());
    told.NotifyAll();
  });
  ASSERT_TRUE(listener_->Start().ok());
  listener_->Own(0);
  {
    const os::NoMoreThreads limit;
    Put({"a:0"});
    base::MutexLock lock(&mu);
    while (codes.empty()) told.Wait(&mu);
    EXPECT_EQ(codes.front(), absl::StatusCode::kResourceExhausted);
  }
  Put({"a:1"});
  store_.AwaitDeleted(queues_[0], 2);
  listener_.reset();
}

TEST_F(OrderedListenerTest, TakesNothingWhilePaused) {
  Start();
  listener_->Pause();
  Put({"a:0"});
  listener_->Own(0);
  EXPECT_EQ(listener_->phase(), ListenerPhase::kPaused);
  EXPECT_EQ(listener_->counters().messages_received, 0);
  listener_->Resume();
  store_.AwaitDeleted(queues_[0], 1);
  listener_.reset();
}

}  // namespace
}  // namespace muster::listener
