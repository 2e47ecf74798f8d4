// SPDX-License-Identifier: Apache-2.0
#include "muster/stream/rocksdb/rocksdb_event_stream_store.h"

#include <unistd.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/os/temp_dir.h"
#include "muster/rocksdb/database.h"
#include "muster/stream/rocksdb/codec.h"
#include "rocksdb/db.h"
#include "rocksdb/write_batch.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/base/killable_process.h"
#include "tests/fakes/rocksdb/faulty_env.h"

namespace muster::stream::rocksdb {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kStream[] = "meters";
constexpr absl::Duration kLong = absl::Minutes(2);

std::vector<NewEvent> Events(const std::vector<std::string>& bodies) {
  std::vector<NewEvent> events;
  for (const std::string& body : bodies) events.push_back({.body = body});
  return events;
}

std::vector<std::string> BodiesFrom(EventStreamStore* store, int64_t offset, int partition = 0) {
  const auto reader = store->OpenReader(kStream, partition, offset).value();
  std::vector<std::string> bodies;
  while (true) {
    const auto events = reader->Next(kMaxReadEvents, absl::ZeroDuration());
    EXPECT_TRUE(events.ok()) << events.status();
    if (!events.ok() || events->empty()) return bodies;
    for (const Event& event : *events) bodies.push_back(event.body);
  }
}

class RocksDbEventStreamStoreTest : public ::testing::Test {
 protected:
  std::unique_ptr<RocksDbEventStreamStore> Open(::rocksdb::Env* env = nullptr) {
    auto store = RocksDbEventStreamStore::Open(dir_ / "stream", {.clock = &clock_, .env = env});
    EXPECT_TRUE(store.ok()) << store.status();
    return *std::move(store);
  }

  // A store with the events a, b and c.
  std::unique_ptr<RocksDbEventStreamStore> OpenWithThree(const StreamOptions& options = {}) {
    auto store = Open();
    EXPECT_TRUE(store->Create(kStream, options).ok());
    EXPECT_EQ(*store->Append(kStream, 0, Events({"a", "b", "c"})), 1);
    return store;
  }

  // Writes `value` over the record of an event, directly in the database; empty: removes it.
  void Overwrite(int64_t offset, const std::string& value) {
    auto database = muster::rocksdb::Database::Open(dir_ / "stream", StreamDatabase({})).value();
    ::rocksdb::WriteBatch batch;
    const std::string key = EventKey({.stream = 1, .partition = 0}, offset);
    if (value.empty()) {
      batch.Delete(database->family(kEvents), key);
    } else {
      batch.Put(database->family(kEvents), key, value);
    }
    ASSERT_TRUE(database->Write(&batch, muster::rocksdb::Durability::kPower).ok());
  }

  const os::TempDir dir_;
  base::FakeClock clock_;
};

TEST_F(RocksDbEventStreamStoreTest, LetsOneOwnerIn) {
  const auto owner = Open();
  EXPECT_EQ(RocksDbEventStreamStore::Open(dir_ / "stream").status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(RocksDbEventStreamStoreTest, ReadsBesideTheOwnerButDoesNotWrite) {
  EXPECT_EQ(RocksDbEventStreamStore::Open(dir_ / "none", {.read_only = true}).status().code(),
            absl::StatusCode::kNotFound);
  const auto owner = OpenWithThree();
  const auto reader = RocksDbEventStreamStore::Open(dir_ / "stream", {.read_only = true}).value();
  EXPECT_THAT(BodiesFrom(reader.get(), 2), ElementsAre("b", "c"));
  for (const absl::Status& status : {reader->Create("other", {}), reader->Delete(kStream),
                                     reader->Append(kStream, 0, Events({"d"})).status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  }
}

TEST_F(RocksDbEventStreamStoreTest, NamesADamagedEventAndReadsThoseBesideIt) {
  OpenWithThree().reset();
  for (const char* const value : {"", "garbage that is longer than a header and a time"}) {
    Overwrite(2, value);
    const auto store = Open();
    const auto reader = store->OpenReader(kStream, 0, 1).value();
    EXPECT_EQ(reader->Next(10, kLong)->size(), 1u);
    for (int i = 0; i < 2; ++i) {
      const absl::Status status = reader->Next(10, kLong).status();
      EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
      EXPECT_THAT(std::string(status.message()), HasSubstr("'meters' partition 0 event 2"));
    }
    EXPECT_THAT(BodiesFrom(store.get(), 3), ElementsAre("c"));
  }
}

TEST_F(RocksDbEventStreamStoreTest, GoesOnBehindADamagedLastEvent) {
  OpenWithThree().reset();
  Overwrite(3, "garbage that is longer than a header and a time");
  const auto store = Open();
  EXPECT_EQ(store->Extent(kStream, 0)->next, 4);
  EXPECT_EQ(*store->Append(kStream, 0, Events({"d"})), 4);
  EXPECT_THAT(BodiesFrom(store.get(), 4), ElementsAre("d"));
}

TEST_F(RocksDbEventStreamStoreTest, RemovesDamagedEventsWithTheirNeighbours) {
  OpenWithThree({.retention = absl::Hours(1)}).reset();
  Overwrite(1, "garbage that is longer than a header and a time");
  Overwrite(2, "");
  const auto store = Open();
  // What is due later has the sweeper sleep again, which tells that it has swept.
  ASSERT_TRUE(store->Create("later", {.retention = absl::Hours(64)}).ok());
  ASSERT_TRUE(store->Append("later", 0, Events({"d"})).ok());
  clock_.AwaitSleepers(1);
  clock_.Advance(absl::Hours(2));
  clock_.AwaitSleepers(1);
  EXPECT_EQ(store->Extent(kStream, 0)->first, 4);
}

TEST_F(RocksDbEventStreamStoreTest, SleepsWhileNothingIsDue) {
  const auto store = Open();
  ASSERT_TRUE(store->Create(kStream, {.retention = absl::Hours(64)}).ok());
  EXPECT_EQ(clock_.NextDeadline(), absl::InfiniteDuration()) << "there is no event";
  ASSERT_TRUE(store->Append(kStream, 0, Events({"a"})).ok());
  clock_.AwaitSleepers(1);
  EXPECT_EQ(clock_.NextDeadline() - clock_.Monotonic(), absl::Hours(65));
}

TEST_F(RocksDbEventStreamStoreTest, KeepsTheOrderOfTimesWhenTheClockIsSetBack) {
  const auto store = OpenWithThree();
  clock_.StepWallClock(-absl::Hours(1));
  ASSERT_TRUE(store->Append(kStream, 0, Events({"d"})).ok());
  const auto events = store->OpenReader(kStream, 0, 3).value()->Next(2, kLong).value();
  EXPECT_GE(events.back().appended, events.front().appended);
}

TEST_F(RocksDbEventStreamStoreTest, WhatWasReadOrAcknowledgedSurvivesAPowerCut) {
  muster::rocksdb::testing::FaultyEnv env;
  const auto store = Open(&env);
  ASSERT_TRUE(store->Create(kStream, {}).ok());
  ASSERT_TRUE(store->Append(kStream, 0, Events({"a", "b"})).ok());
  env.CopyAsAfterPowerCut(dir_ / "stream", dir_ / "after");
  const auto after = RocksDbEventStreamStore::Open(dir_ / "after", {.clock = &clock_}).value();
  EXPECT_THAT(BodiesFrom(after.get(), 1), ElementsAre("a", "b"));
}

TEST_F(RocksDbEventStreamStoreTest, ShowsNoEventBeforeItIsSynced) {
  muster::rocksdb::testing::FaultyEnv env;
  std::atomic<EventStreamStore*> opened = nullptr;
  std::atomic<int> seen = 0;
  env.before_sync = [&] {
    EventStreamStore* const store = opened;
    if (store != nullptr && store->Extent(kStream, 0)->next == 1) ++seen;
  };
  const auto store = Open(&env);
  ASSERT_TRUE(store->Create(kStream, {}).ok());
  opened = store.get();
  ASSERT_TRUE(store->Append(kStream, 0, Events({"a"})).ok());
  opened = nullptr;
  EXPECT_EQ(seen, 1);
  EXPECT_EQ(store->Extent(kStream, 0)->next, 2);
}

TEST_F(RocksDbEventStreamStoreTest, RefusesAppendsToAFullDiskAndReadsOn) {
  muster::rocksdb::testing::FaultyEnv env;
  auto store = Open(&env);
  ASSERT_TRUE(store->Create(kStream, {}).ok());
  ASSERT_TRUE(store->Append(kStream, 0, Events({"a"})).ok());
  env.disk_full = true;
  EXPECT_EQ(store->Append(kStream, 0, Events({"b"})).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(store->Append(kStream, 0, Events({"c"})).status().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_THAT(BodiesFrom(store.get(), 1), ElementsAre("a"));
  env.disk_full = false;
  store.reset();
  store = Open(&env);
  EXPECT_TRUE(store->Append(kStream, 0, Events({"d"})).ok());
}

// Each producer appends its number and a counter, and reports what was acknowledged.
const base::testing::RegisteredProcess producers("producers", [](const std::string& dir) {
  const auto store = RocksDbEventStreamStore::Open(dir).value();
  if (!store->Create(kStream, {}).ok()) _exit(1);
  std::vector<std::thread> threads;
  for (int p = 0; p < 4; ++p) {
    threads.emplace_back([&, p] {
      for (int i = 0;; i += 3) {
        const auto body = [&](int n) { return absl::StrCat(p, " ", getpid(), " ", i + n); };
        const auto offset = store->Append(kStream, p % 2, Events({body(0), body(1), body(2)}));
        if (!offset.ok()) _exit(1);
        base::testing::Send(absl::StrCat(p % 2, " ", *offset, " ", body(0)));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
});

TEST_F(RocksDbEventStreamStoreTest, LosesAndMovesNoAcknowledgedEventWhenKilled) {
  std::vector<std::string> acknowledged;
  for (int round = 0; round < 3; ++round) {
    base::testing::KillableProcess process("producers", dir_ / "stream");
    for (int n = 0; const auto line = process.Receive(); ++n) {
      acknowledged.push_back(*line);
      if (n == 40 * round + 10) {
        ASSERT_TRUE(process.Kill());
      }
    }
  }
  const auto store = Open();
  const std::vector<std::string> bodies[2] = {BodiesFrom(store.get(), 1, 0),
                                              BodiesFrom(store.get(), 1, 1)};
  for (const std::string& line : acknowledged) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(' ', 2));
    int partition = 0, offset = 0;
    ASSERT_TRUE(absl::SimpleAtoi(parts[0], &partition) && absl::SimpleAtoi(parts[1], &offset));
    EXPECT_EQ(bodies[partition].at(static_cast<size_t>(offset) - 1), parts[2]);
  }
}

}  // namespace
}  // namespace muster::stream::rocksdb
