// SPDX-License-Identifier: Apache-2.0

// Scan: all that a queue holds, in the order of its puts.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "muster/queue/limits.h"
#include "muster/queue/queue_store.h"
#include "tests/conformance/queue/queue_conformance.h"

namespace muster::queue::conformance {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;

std::vector<std::string> ScannedBodies(const std::vector<StoredMessage>& messages) {
  std::vector<std::string> bodies;
  for (const StoredMessage& message : messages) bodies.push_back(message.body);
  return bodies;
}

TEST_P(QueueConformanceTest, ScansWhatIsReadyLeasedAndGivenBackInTheOrderOfThePuts) {
  std::vector<PutResult> puts;
  for (const char* body : {"1", "2", "3", "4", "5"}) puts.push_back(Put(body));
  const std::vector<Message> held = Receive(3);
  ASSERT_EQ(held.size(), 3u);
  ASSERT_TRUE(Release(held[0].receipt, absl::Hours(1)).ok());
  ASSERT_TRUE(Release(held[1].receipt).ok());
  const std::vector<StoredMessage> all = Scan();
  EXPECT_THAT(ScannedBodies(all), ElementsAre("1", "2", "3", "4", "5"));
  ASSERT_EQ(all.size(), puts.size());
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].position, puts[i].position);
    EXPECT_EQ(all[i].message_id, puts[i].message_id);
  }
}

TEST_P(QueueConformanceTest, ScansWhatWasPutWithADelay) {
  if (!traits().delayed_put) GTEST_SKIP();
  NewMessage late;
  late.body = "late";
  late.delay = absl::Minutes(1);
  Put(late);
  Put("now");
  EXPECT_THAT(ScannedBodies(Scan()), ElementsAre("late", "now"));
}

TEST_P(QueueConformanceTest, ScansFromAnyPositionAndAcrossGaps) {
  std::vector<PutResult> puts;
  std::vector<std::string> left;
  for (int i = 0; i < 100; ++i) puts.push_back(Put(std::to_string(i)));
  for (int i = 0; i < 100; ++i) {
    if (i % 10 == 0 || i > 95) {
      left.push_back(std::to_string(i));
    } else {
      ASSERT_TRUE(Delete(puts[static_cast<size_t>(i)].receipt).ok()) << i;
    }
  }
  EXPECT_THAT(ScannedBodies(Scan(0, 3)), ElementsAreArray(left));
  EXPECT_THAT(ScannedBodies(Scan(0, kMaxScan)), ElementsAreArray(left));
  EXPECT_THAT(ScannedBodies(Scan(puts[90].position, 3)), ElementsAre("90", "96", "97", "98", "99"));
  EXPECT_THAT(ScannedBodies(Scan(puts[90].position + 1, 3)), ElementsAre("96", "97", "98", "99"));
  EXPECT_THAT(Scan(puts[99].position + 1), IsEmpty());
}

TEST_P(QueueConformanceTest, ScansNothingThatIsSettledPoisonOrCleared) {
  EXPECT_THAT(Scan(), IsEmpty());
  for (const char* body : {"1", "2", "3", "4"}) Put(body);
  const std::vector<Message> held = Receive(3);
  ASSERT_EQ(held.size(), 3u);
  ASSERT_TRUE(Delete(held[1].receipt).ok());
  ASSERT_TRUE(DeadLetter(held[0].receipt, "poison").ok());
  EXPECT_THAT(ScannedBodies(Scan()), ElementsAre("3", "4"));
  ASSERT_TRUE(store_->Clear(queue_).ok());
  EXPECT_THAT(Scan(), IsEmpty());
  Put("5");
  EXPECT_THAT(ScannedBodies(Scan()), ElementsAre("5"));
}

TEST_P(QueueConformanceTest, ScansNothingThatHasExpired) {
  if (!traits().per_message_ttl) GTEST_SKIP();
  NewMessage mortal;
  mortal.body = "mortal";
  mortal.ttl = absl::Minutes(1);
  Put(mortal);
  Put("2");
  Advance(absl::Minutes(2));
  EXPECT_THAT(ScannedBodies(Scan()), ElementsAre("2"));
}

TEST_P(QueueConformanceTest, AScanChangesNothing) {
  for (const char* body : {"1", "2", "3"}) Put(body);
  const Message held = ReceiveOne();
  const QueueStats before = Stats();
  EXPECT_THAT(ScannedBodies(Scan()), ElementsAre("1", "2", "3"));
  const QueueStats after = Stats();
  EXPECT_EQ(after.ready, before.ready);
  EXPECT_EQ(after.in_flight, before.in_flight);
  const std::vector<Message> next = Receive(2);
  ASSERT_EQ(next.size(), 2u);
  EXPECT_EQ(next.front().body, "2");
  EXPECT_EQ(next.front().dequeue_count, 1);
  EXPECT_TRUE(Delete(held.receipt).ok()) << "its lease is still its holder's";
}

TEST_P(QueueConformanceTest, AScanGoesOnWhereMessagesAreDeletedMeanwhileAndSeesTheirCopies) {
  for (const char* body : {"1", "2", "3"}) Put(body);
  const std::vector<Message> held = Receive(3);
  ASSERT_EQ(held.size(), 3u);
  const auto page = store_->Scan(queue_, 0, 1);
  ASSERT_TRUE(page.ok()) << page.status();
  ASSERT_THAT(ScannedBodies(*page), ElementsAre("1"));
  Put("copy of 2");
  ASSERT_TRUE(Delete(held[0].receipt).ok());
  ASSERT_TRUE(Delete(held[1].receipt).ok());
  EXPECT_THAT(ScannedBodies(Scan(page->front().position + 1, 1)), ElementsAre("3", "copy of 2"));
}

TEST_P(QueueConformanceTest, NoScanMissesAMessageThatMovesToTheTailAllTheTime) {
  std::vector<NewMessage> others(100);
  for (NewMessage& other : others) other.body = "other";
  PutAll(others);
  PutResult at = Put("moves");
  std::atomic<bool> ends = false;
  std::thread mover([&] {
    while (!ends) {
      const PutResult copy = Put("moves");
      EXPECT_TRUE(Delete(at.receipt).ok());
      at = copy;
    }
  });
  for (int i = 0; i < 30; ++i) {
    const std::vector<std::string> bodies = ScannedBodies(Scan(0, 64));
    EXPECT_THAT(bodies, Contains("moves")) << "scan " << i;
    EXPECT_GE(bodies.size(), others.size() + 1);
  }
  ends = true;
  mover.join();
}

TEST_P(QueueConformanceTest, EndsAPageOfAScanEarlyWhereBodiesAreLarge) {
  const std::string large(size_t{256} << 10, 'x');
  const size_t fill = kMaxScanBytes / large.size() + 1;
  const size_t all = fill + static_cast<size_t>(kMaxReceive) + 2;
  for (size_t i = 0; i < all; ++i) Put(large);
  const auto page = store_->Scan(queue_, 0, kMaxScan);
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_LT(page->size(), all);
  ASSERT_FALSE(page->empty());
  EXPECT_EQ(page->size() + Scan(page->back().position + 1, kMaxScan).size(), all);
}

TEST_P(QueueConformanceTest, RefusesAScanOfNoQueueOrOfMoreThanAPage) {
  EXPECT_TRUE(absl::IsNotFound(store_->Scan({"acme", "nowhere"}, 0, 1).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(store_->Scan(queue_, 0, 0).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(store_->Scan(queue_, 0, kMaxScan + 1).status()));
}

}  // namespace

bool LinkScanTests() { return true; }

}  // namespace muster::queue::conformance
