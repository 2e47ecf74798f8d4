// SPDX-License-Identifier: Apache-2.0
#include "muster/sync/unique_id_generator.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/sync/memory_sync_store.h"

namespace muster::sync {
namespace {

using ::testing::HasSubstr;

constexpr char kKey[] = "ids/batch";

class UniqueIdGeneratorTest : public ::testing::Test {
 protected:
  UniqueIdGenerator Generator(int64_t range_size = 1000, int max_retries = 25) {
    return UniqueIdGenerator(&store_, kKey, {.range_size = range_size, .max_retries = max_retries});
  }

  static void Skip(UniqueIdGenerator* ids, int n) {
    for (int i = 0; i < n; ++i) ASSERT_TRUE(ids->NextId().ok());
  }

  testing::MemorySyncStore store_;
};

TEST_F(UniqueIdGeneratorTest, CountsFromOne) {
  UniqueIdGenerator ids = Generator();
  EXPECT_EQ(*ids.NextId(), 1);
  EXPECT_EQ(*ids.NextId(), 2);
}

TEST_F(UniqueIdGeneratorTest, HandsOutNoMoreOfARangeThatIsDropped) {
  UniqueIdGenerator ids = Generator(10);
  EXPECT_EQ(*ids.NextId(), 1);
  ids.DropRange();
  EXPECT_EQ(*ids.NextId(), 11);
}

TEST_F(UniqueIdGeneratorTest, WritesOncePerRange) {
  UniqueIdGenerator ids = Generator(1000);
  Skip(&ids, 1000);
  EXPECT_EQ(store_.writes_tried(), 1);
  EXPECT_EQ(*ids.NextId(), 1001);
  EXPECT_EQ(store_.writes_tried(), 2);
}

TEST_F(UniqueIdGeneratorTest, TwoGeneratorsNeverShareAnId) {
  UniqueIdGenerator a = Generator(10), b = Generator(10);
  EXPECT_EQ(*a.NextId(), 1);
  EXPECT_EQ(*b.NextId(), 11);
  Skip(&a, 9);
  EXPECT_EQ(*a.NextId(), 21);
}

TEST_F(UniqueIdGeneratorTest, ACrashLosesTheRestOfOneRangeOnly) {
  {
    UniqueIdGenerator ids = Generator(1000);
    EXPECT_EQ(*ids.NextId(), 1);
  }
  UniqueIdGenerator restarted = Generator(1000);
  EXPECT_EQ(*restarted.NextId(), 1001);
}

TEST_F(UniqueIdGeneratorTest, WinsWithItsLastRetry) {
  store_.LoseNextWrites(25);
  UniqueIdGenerator ids = Generator(1000, 25);
  EXPECT_EQ(*ids.NextId(), 1);
  EXPECT_EQ(store_.writes_tried(), 26);
}

TEST_F(UniqueIdGeneratorTest, GivesUpAfterMaxRetriesPlusOneAttempts) {
  store_.LoseNextWrites(26);
  UniqueIdGenerator ids = Generator(1000, 25);
  EXPECT_EQ(ids.NextId().status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(store_.writes_tried(), 26);
}

// After exhausted retries the papers' generator counted on, into another generator's range.
TEST_F(UniqueIdGeneratorTest, HandsOutNothingUnreservedAfterAnError) {
  UniqueIdGenerator ids = Generator(10, 2);
  UniqueIdGenerator other = Generator(10);
  Skip(&ids, 10);
  EXPECT_EQ(*other.NextId(), 11);
  store_.LoseNextWrites(6);
  EXPECT_EQ(ids.NextId().status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(ids.NextId().status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(*ids.NextId(), 21);
}

// The papers' algorithm: it sets its range before it knows whether it is reserved, and so has one
// that it never reserved once its retries are used up.
class PapersGenerator {
 public:
  PapersGenerator(OptimisticSyncStore* store, int64_t range_size, int max_retries)
      : store_(store), range_size_(range_size), max_retries_(max_retries) {}

  absl::StatusOr<int64_t> NextId() {
    if (last_id_ == upper_limit_) {
      if (const absl::Status updated = Update(); !updated.ok()) return updated;
    }
    return last_id_++;
  }

 private:
  absl::Status Update() {
    for (int attempt = 0; attempt < max_retries_ + 1; ++attempt) {
      const VersionedData record = store_->Get(kKey).value();
      last_id_ = record.version == kAbsent ? 1 : std::stoll(record.data);
      upper_limit_ = last_id_ + range_size_;
      if (store_->TryWrite(kKey, absl::StrCat(upper_limit_), record.version).value()) return {};
    }
    return absl::AbortedError("retries are used up");
  }

  OptimisticSyncStore* const store_;
  const int64_t range_size_;
  const int max_retries_;
  int64_t last_id_ = 0;
  int64_t upper_limit_ = 0;
};

TEST_F(UniqueIdGeneratorTest, ThePapersGeneratorGivesAnIdTwiceAfterAnErrorWhereThisOneDoesNot) {
  PapersGenerator papers(&store_, 10, 2);
  UniqueIdGenerator ids = Generator(10, 2), other = Generator(10);
  store_.LoseNextWrites(3);
  EXPECT_EQ(papers.NextId().status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(*papers.NextId(), 1) << "which nobody reserved for it";
  EXPECT_EQ(*other.NextId(), 1) << "so that it is given twice";

  store_.LoseNextWrites(3);
  EXPECT_EQ(ids.NextId().status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(*ids.NextId(), 11);
}

// A store may lose the record, and with it the position of the generator.
TEST_F(UniqueIdGeneratorTest, AsksWhereToBeginOnlyWhereThereIsNoRecord) {
  std::vector<bool> asked;
  absl::StatusOr<int64_t> first = 500;
  UniqueIdGenerator ids(&store_, kKey, {.range_size = 2, .begin_at = [&](bool lost) {
                                          asked.push_back(lost);
                                          return first;
                                        }});
  EXPECT_EQ(*ids.NextId(), 500);
  EXPECT_EQ(*ids.NextId(), 501);
  EXPECT_EQ(*ids.NextId(), 502);
  EXPECT_EQ(*ids.NextId(), 503);
  EXPECT_EQ(asked, std::vector<bool>{false});
  store_.Erase(kKey);
  first = absl::UnavailableError("nobody knows");
  EXPECT_EQ(ids.NextId().status().code(), absl::StatusCode::kUnavailable);
  first = 900;
  EXPECT_EQ(*ids.NextId(), 900);
  EXPECT_EQ(asked, (std::vector<bool>{false, true, true}));
  store_.Erase(kKey);
  first = -7;
  Skip(&ids, 1);
  EXPECT_EQ(*ids.NextId(), 1) << "never below the first id";
}

// The record is of an older copy than what holds the ids.
TEST_F(UniqueIdGeneratorTest, GoesOnBehindTheIdsThatAreKnownToBeGiven) {
  absl::StatusOr<std::optional<int64_t>> highest = 37;
  int asked = 0;
  UniqueIdGenerator ids(&store_, kKey, {.range_size = 10, .highest_given = [&] {
                                          ++asked;
                                          return highest;
                                        }});
  EXPECT_EQ(*ids.NextId(), 38);
  Skip(&ids, 10);
  EXPECT_EQ(asked, 1) << "the record is right now";
  EXPECT_EQ(*ids.NextId(), 49);
  highest = std::nullopt;
  ids.DropRange();
  ASSERT_TRUE(*store_.TryWrite(kKey, "5", store_.Get(kKey)->version)) << "restored in between";
  EXPECT_EQ(*ids.NextId(), 58) << "behind its own, at least";
  highest = absl::UnavailableError("ask again soon");
  ids.DropRange();
  EXPECT_EQ(ids.NextId().status().code(), absl::StatusCode::kUnavailable);
  highest = 100;
  EXPECT_EQ(*ids.NextId(), 101) << "asked again";
}

TEST_F(UniqueIdGeneratorTest, TriesAgainAfterAStoreThatFailed) {
  UniqueIdGenerator ids = Generator(10);
  store_.FailNextGet(absl::UnavailableError("no route"));
  EXPECT_EQ(ids.NextId().status().code(), absl::StatusCode::kUnavailable);
  store_.FailNextWrite(absl::DeadlineExceededError("slow"));
  EXPECT_EQ(ids.NextId().status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(*ids.NextId(), 1);
}

TEST_F(UniqueIdGeneratorTest, NamesTheRecordThatIsCorruptAndWhatItHolds) {
  for (const char* data : {"", "abc", "-5", "0", " 7", "7 ", "+7", "1.5", "99999999999999999999"}) {
    store_.Overwrite(kKey, data);
    UniqueIdGenerator ids = Generator();
    const absl::Status status = ids.NextId().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << data;
    EXPECT_THAT(std::string(status.message()), HasSubstr(kKey));
    EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat("'", data, "'")));
  }
  store_.Overwrite(kKey, "7");
  UniqueIdGenerator ids = Generator();
  EXPECT_EQ(*ids.NextId(), 7);
}

TEST_F(UniqueIdGeneratorTest, ShowsOnlyTheStartOfLongGarbage) {
  store_.Overwrite(kKey, std::string(60000, '\x01'));
  UniqueIdGenerator ids = Generator();
  EXPECT_LT(ids.NextId().status().message().size(), 500u);
}

TEST_F(UniqueIdGeneratorTest, StopsBeforeTheLargestNumber) {
  store_.Overwrite(kKey, absl::StrCat(std::numeric_limits<int64_t>::max() - 10));
  UniqueIdGenerator ids = Generator(10);
  Skip(&ids, 10);
  EXPECT_EQ(ids.NextId().status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(ids.NextId().status().code(), absl::StatusCode::kOutOfRange);
}

// Threads of several nodes insert ids under a primary key.
TEST_F(UniqueIdGeneratorTest, ManyThreadsOfManyNodesNeverViolateAPrimaryKey) {
  constexpr int kNodes = 4, kThreadsPerNode = 4, kIdsPerThread = 1000;
  std::vector<std::unique_ptr<UniqueIdGenerator>> nodes;
  std::vector<std::vector<int64_t>> drawn(kNodes * kThreadsPerNode);
  std::vector<std::thread> threads;
  for (int node = 0; node < kNodes; ++node) {
    nodes.push_back(std::make_unique<UniqueIdGenerator>(
        &store_, kKey, UniqueIdOptions{.range_size = 7, .max_retries = 10000}));
    for (int t = 0; t < kThreadsPerNode; ++t) {
      threads.emplace_back([ids = nodes.back().get(), mine = &drawn[threads.size()]] {
        for (int i = 0; i < kIdsPerThread; ++i) mine->push_back(ids->NextId().value());
      });
    }
  }
  for (std::thread& thread : threads) thread.join();
  std::set<int64_t> primary_key;
  for (const std::vector<int64_t>& ids : drawn) {
    EXPECT_TRUE(std::is_sorted(ids.begin(), ids.end()));
    for (int64_t id : ids) ASSERT_TRUE(primary_key.insert(id).second) << id << " came twice";
  }
  EXPECT_EQ(primary_key.size(), drawn.size() * kIdsPerThread);
}

}  // namespace
}  // namespace muster::sync
