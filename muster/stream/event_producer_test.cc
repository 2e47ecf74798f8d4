// SPDX-License-Identifier: Apache-2.0
#include "muster/stream/event_producer.h"

#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/stream/memory_event_stream_store.h"

namespace muster::stream {
namespace {

// Events of one key would change their order if this changed: producers of all versions must agree.
TEST(PartitionOfTest, KeepsItsChoiceForever) {
  std::vector<int> chosen;
  for (const char* key : {"home-1", "home-2", "home-3", "a", "\xff"}) {
    chosen.push_back(PartitionOf(key, 16));
  }
  EXPECT_EQ(chosen, (std::vector<int>{3, 2, 15, 15, 14}));
}

TEST(PartitionOfTest, SpreadsKeys) {
  std::vector<int> counts(16);
  for (int i = 0; i < 16000; ++i) {
    ++counts[static_cast<size_t>(PartitionOf(absl::StrCat("home-", i), 16))];
  }
  for (const int count : counts) EXPECT_NEAR(count, 1000, 200);
}

class EventProducerTest : public ::testing::Test {
 protected:
  EventProducerTest() {
    EXPECT_TRUE(store_.Create("homes", {.partitions = 4}).ok());
    producer_ =
        EventProducer::Open(&store_, "homes", {.retry = {.max_attempts = 1}}, &clock_).value();
  }

  std::vector<std::string> Bodies(int partition) {
    const auto reader = store_.OpenReader("homes", partition, 1).value();
    std::vector<std::string> bodies;
    const std::vector<Event> events = reader->Next(4096, absl::ZeroDuration()).value();
    for (const Event& event : events) {
      bodies.push_back(event.body);
    }
    return bodies;
  }

  base::FakeClock clock_;
  testing::MemoryEventStreamStore store_{&clock_};
  std::unique_ptr<EventProducer> producer_;
};

TEST_F(EventProducerTest, SendsAKeyToItsPartitionInOrder) {
  const int partition = PartitionOf("home-17", 4);
  EXPECT_EQ(producer_->Send({.key = "home-17", .body = "a"}).value(), (EventPlace{partition, 1}));
  EXPECT_EQ(producer_->Send({.key = "home-17", .body = "b"}).value(), (EventPlace{partition, 2}));
  EXPECT_EQ(Bodies(partition), (std::vector<std::string>{"a", "b"}));
}

TEST_F(EventProducerTest, SendsWithoutAKeyToThePartitionsInTurn) {
  std::vector<int> counts(4);
  for (int i = 0; i < 8; ++i) {
    ++counts[static_cast<size_t>(producer_->Send({.body = "x"}).value().partition)];
  }
  EXPECT_EQ(counts, (std::vector<int>{2, 2, 2, 2}));
}

TEST_F(EventProducerTest, SendsToTheNamedPartitionWhateverTheKey) {
  EXPECT_EQ(producer_->Send({.key = "home-17", .body = "a"}, 3).value(), (EventPlace{3, 1}));
  EXPECT_EQ(producer_->Send({.body = "a"}, 4).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(producer_->Send({.body = "a"}, -2).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(EventProducerTest, AppendsManyAtOnce) {
  std::vector<NewEvent> events;
  for (int i = 0; i < 2000; ++i) events.push_back({.key = "k", .body = absl::StrCat(i)});
  const std::vector<absl::StatusOr<EventPlace>> places = producer_->SendAll(events);
  for (size_t i = 0; i < places.size(); ++i) {
    EXPECT_EQ(places[i].value(), (EventPlace{PartitionOf("k", 4), static_cast<int64_t>(i) + 1}));
  }
  EXPECT_EQ(store_.appends(), 2) << "1,000 of them fit into an append";
}

TEST_F(EventProducerTest, CutsAppendsByTheirBytes) {
  std::vector<NewEvent> events(20, NewEvent{.key = "k", .body = std::string(kMaxBodyBytes, 'x')});
  for (const auto& place : producer_->SendAll(events)) EXPECT_TRUE(place.ok()) << place.status();
  EXPECT_EQ(store_.appends(), 3);
}

TEST_F(EventProducerTest, OfManyOnlyThoseFailThatBreakALimit) {
  const auto places = producer_->SendAll(
      {{.body = std::string(kMaxBodyBytes + 1, 'x')}, {.key = "k", .body = "b"}});
  EXPECT_EQ(places[0].status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(places[1].ok());
}

TEST_F(EventProducerTest, WhatFollowsAFailedAppendInItsPartitionIsNotSent) {
  store_.AnswerAppends(absl::UnavailableError("away"));
  std::vector<NewEvent> events(2000, NewEvent{.key = "k", .body = "b"});
  for (const auto& place : producer_->SendAll(events)) {
    EXPECT_EQ(place.status().code(), absl::StatusCode::kUnavailable);
  }
  EXPECT_EQ(store_.appends(), 1);
}

TEST_F(EventProducerTest, WhatThreadsSendMeanwhileFollows) {
  store_.HoldAppends(true);
  std::vector<std::thread> threads;
  threads.emplace_back([this] { EXPECT_TRUE(producer_->Send({.body = "first"}, 0).ok()); });
  store_.AwaitHeldAppends(1);
  base::Mutex mu;
  base::CondVar begun;
  int beginning = 0;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      {
        base::MutexLock lock(&mu);
        ++beginning;
        begun.NotifyAll();
      }
      EXPECT_TRUE(producer_->Send({.body = absl::StrCat(i)}, 0).ok());
    });
  }
  {
    base::MutexLock lock(&mu);
    while (beginning < 8) begun.Wait(&mu);
  }
  store_.HoldAppends(false);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Bodies(0).front(), "first");
  EXPECT_EQ(Bodies(0).size(), 9u);
}

TEST_F(EventProducerTest, TriesAgainWhatFailedForAPassingReason) {
  const auto patient = EventProducer::Open(&store_, "homes", {}, &clock_).value();
  store_.AnswerAppends(absl::UnavailableError("away"));
  std::thread sender([&] { EXPECT_TRUE(patient->Send({.body = "a"}, 0).ok()); });
  clock_.AwaitSleepers(1);
  store_.AnswerAppends(absl::OkStatus());
  clock_.Advance(absl::Seconds(1));
  sender.join();
  EXPECT_EQ(Bodies(0), (std::vector<std::string>{"a"}));
}

TEST_F(EventProducerTest, IsNotOpenedOverNoStream) {
  EXPECT_EQ(EventProducer::Open(&store_, "none", {}, &clock_).status().code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace muster::stream
