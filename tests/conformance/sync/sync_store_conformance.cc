// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/sync/sync_store_conformance.h"

#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "muster/sync/optimistic_sync_store.h"

namespace muster::sync::conformance {

Engine::Engine(HomeMaker maker) : make_home(std::move(maker)) {}

void SyncStoreConformance::SetUp() {
  home_ = GetParam().make_home();
  store_ = home_->Open();
  ASSERT_NE(store_, nullptr);
}

void SyncStoreConformance::Restart() {
  store_.reset();
  store_ = home_->Open();
  ASSERT_NE(store_, nullptr);
}

VersionedData SyncStoreConformance::Get(absl::string_view key) {
  absl::StatusOr<VersionedData> record = store_->Get(key);
  EXPECT_TRUE(record.ok()) << record.status();
  return record.value_or(VersionedData());
}

bool SyncStoreConformance::TryWrite(absl::string_view key, absl::string_view data,
                                    uint64_t version) {
  const absl::StatusOr<bool> written = store_->TryWrite(key, data, version);
  EXPECT_TRUE(written.ok()) << written.status();
  return written.value_or(false);
}

TEST_P(SyncStoreConformance, AnswersAbsentForARecordThatNobodyWrote) {
  EXPECT_EQ(Get("k").version, kAbsent);
  EXPECT_EQ(Get("k").data, "");
}

TEST_P(SyncStoreConformance, CreatesARecordOnce) {
  EXPECT_TRUE(TryWrite("k", "first", kAbsent));
  EXPECT_FALSE(TryWrite("k", "second", kAbsent));
  EXPECT_EQ(Get("k").data, "first");
  EXPECT_NE(Get("k").version, kAbsent);
}

TEST_P(SyncStoreConformance, WritesOverTheVersionThatWasReadOnly) {
  ASSERT_TRUE(TryWrite("k", "one", kAbsent));
  const uint64_t first = Get("k").version;
  EXPECT_TRUE(TryWrite("k", "two", first));
  EXPECT_FALSE(TryWrite("k", "three", first));
  EXPECT_EQ(Get("k").data, "two");
  EXPECT_GT(Get("k").version, first);
}

TEST_P(SyncStoreConformance, TakesAWriteOfTheSameDataForAChange) {
  ASSERT_TRUE(TryWrite("k", "same", kAbsent));
  const uint64_t before = Get("k").version;
  ASSERT_TRUE(TryWrite("k", "same", before));
  EXPECT_GT(Get("k").version, before);
  EXPECT_FALSE(TryWrite("k", "late", before));
}

TEST_P(SyncStoreConformance, RefusesAVersionThatNeverWas) {
  EXPECT_FALSE(TryWrite("k", "x", 42));
  EXPECT_EQ(Get("k").version, kAbsent);
  ASSERT_TRUE(TryWrite("k", "x", kAbsent));
  EXPECT_FALSE(TryWrite("k", "y", Get("k").version + 1));
}

TEST_P(SyncStoreConformance, RemovesARecordOfTheVersionThatTheCallerKnows) {
  ASSERT_TRUE(TryWrite("k", "one", kAbsent));
  ASSERT_TRUE(TryWrite("k2", "other", kAbsent));
  const uint64_t first = Get("k").version;
  ASSERT_TRUE(TryWrite("k", "two", first));
  const uint64_t second = Get("k").version;
  for (const uint64_t version : {kAbsent, first, second + 100}) {
    EXPECT_EQ(*store_->TryDelete("k", version), false) << version;
    EXPECT_EQ(Get("k").data, "two");
  }
  EXPECT_EQ(*store_->TryDelete("k", second), true);
  EXPECT_EQ(Get("k").version, kAbsent);
  EXPECT_EQ(*store_->TryDelete("k", second), false) << "it is gone";
  EXPECT_EQ(*store_->TryDelete("k", kAbsent), false);
  EXPECT_FALSE(TryWrite("k", "late", second));
  EXPECT_EQ(Get("k2").data, "other");
  EXPECT_FALSE(store_->TryDelete("a b", second).ok());
}

// A writer that knows the removed record must not write over the new one.
TEST_P(SyncStoreConformance, GivesANewRecordNoVersionOfARemovedOne) {
  uint64_t removed = kAbsent;
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(TryWrite("k", "new", kAbsent));
    EXPECT_GT(Get("k").version, removed);
    ASSERT_TRUE(TryWrite("k", "newer", Get("k").version));
    removed = Get("k").version;
    EXPECT_EQ(*store_->TryDelete("k", removed), true);
  }
}

TEST_P(SyncStoreConformance, KeepsARemovalOverARestartOrTheRecordAsItWas) {
  if (!home_->Keeps()) GTEST_SKIP() << "this store keeps nothing";
  ASSERT_TRUE(TryWrite("k", "one", kAbsent));
  const uint64_t removed = Get("k").version;
  EXPECT_EQ(*store_->TryDelete("k", removed), true);
  Restart();
  if (const VersionedData back = Get("k"); back.version != kAbsent) {
    EXPECT_EQ(back.data, "one");
    EXPECT_EQ(back.version, removed);
    EXPECT_EQ(*store_->TryDelete("k", removed), true);
  }
  ASSERT_TRUE(TryWrite("k", "two", kAbsent));
  EXPECT_EQ(Get("k").data, "two");
}

TEST_P(SyncStoreConformance, KeepsRecordsApart) {
  ASSERT_TRUE(TryWrite("ids/batch", "1", kAbsent));
  ASSERT_TRUE(TryWrite("ids/batch.2", "2", kAbsent));
  EXPECT_EQ(Get("ids/batch").data, "1");
  EXPECT_EQ(Get("ids/batch.2").data, "2");
  EXPECT_EQ(Get("ids").version, kAbsent);
}

TEST_P(SyncStoreConformance, KeepsAnyBytesUpToItsLimit) {
  const std::string binary("\0\xff\n\r\x01", 5);
  ASSERT_TRUE(TryWrite("binary", binary, kAbsent));
  EXPECT_EQ(Get("binary").data, binary);
  ASSERT_TRUE(TryWrite("empty", "", kAbsent));
  EXPECT_EQ(Get("empty").data, "");
  EXPECT_NE(Get("empty").version, kAbsent);
  const std::string large(kMaxDataBytes, 'x');
  ASSERT_TRUE(TryWrite("large", large, kAbsent));
  EXPECT_EQ(Get("large").data, large);
}

TEST_P(SyncStoreConformance, RefusesDataAndKeysBeyondTheirLimits) {
  EXPECT_EQ(store_->TryWrite("k", std::string(kMaxDataBytes + 1, 'x'), kAbsent).status().code(),
            absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(TryWrite(std::string(kMaxKeyBytes, 'k'), "x", kAbsent));
  for (const std::string& key :
       {std::string(), std::string(kMaxKeyBytes + 1, 'k'), std::string("a b"), std::string("a*"),
        std::string("a\0b", 3), std::string("\xc3\xa9")}) {
    EXPECT_EQ(store_->Get(key).status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(store_->TryWrite(key, "x", kAbsent).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST_P(SyncStoreConformance, KeepsWhatItAcknowledgedOverARestart) {
  if (!home_->Keeps()) GTEST_SKIP() << "this store keeps nothing";
  ASSERT_TRUE(TryWrite("k", "one", kAbsent));
  ASSERT_TRUE(TryWrite("k", "two", Get("k").version));
  const uint64_t version = Get("k").version;
  Restart();
  EXPECT_EQ(Get("k").data, "two");
  EXPECT_EQ(Get("k").version, version);
  EXPECT_FALSE(TryWrite("k", "three", version - 1));
  EXPECT_TRUE(TryWrite("k", "three", version));
  EXPECT_GT(Get("k").version, version);
}

TEST_P(SyncStoreConformance, LetsOneOfManyCreatorsWin) {
  std::atomic<int> winners = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      if (TryWrite("k", absl::StrCat(t), kAbsent)) ++winners;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(winners, 1);
}

TEST_P(SyncStoreConformance, LosesNoIncrementOfManyThreads) {
  constexpr int kThreads = 4, kIncrements = 50;
  const auto increment = [&] {
    while (true) {
      const VersionedData record = Get("counter");
      int value = 0;
      if (record.version != kAbsent) {
        EXPECT_TRUE(absl::SimpleAtoi(record.data, &value));
      }
      if (TryWrite("counter", absl::StrCat(value + 1), record.version)) return;
    }
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kIncrements; ++i) increment();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Get("counter").data, absl::StrCat(kThreads * kIncrements));
}

}  // namespace muster::sync::conformance
