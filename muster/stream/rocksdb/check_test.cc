// SPDX-License-Identifier: Apache-2.0

// Damages each kind of stored record of a real store: the check names it, and a repair mends it at
// the cost of that record alone.
#include "muster/stream/rocksdb/check.h"

#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/os/quarantine.h"
#include "muster/os/temp_dir.h"
#include "muster/stream/rocksdb/codec.h"
#include "muster/stream/rocksdb/partition_log.h"
#include "muster/stream/rocksdb/rocksdb_event_stream_store.h"
#include "rocksdb/db.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/base/let_others_run.h"
#include "tests/fakes/os/collected_findings.h"

namespace muster::stream::rocksdb {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The stream "homes", number 1, has two partitions and keeps events for an hour. Partition 0 holds
// a, b, c, d, e (offsets 1 to 5), partition 1 holds f.
class StreamCheckTest : public ::testing::Test {
 protected:
  StreamCheckTest() {
    Open();
    EXPECT_TRUE(store_->Create("homes", {.partitions = 2, .retention = absl::Hours(1)}).ok());
    for (const char* body : {"a", "b", "c", "d", "e"}) Append("homes", 0, body);
    Append("homes", 1, "f");
    store_.reset();
  }

  void Open() {
    auto store = RocksDbEventStreamStore::Open(dir_, {.clock = &clock_});
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }
  int64_t Append(const std::string& stream, int partition, const std::string& body) {
    return store_->Append(stream, partition, {{.body = body}}).value();
  }
  // "offset body" of what a reader gets from `offset` on.
  std::vector<std::string> Read(const std::string& stream, int partition, int64_t offset = 1) {
    const auto reader = store_->OpenReader(stream, partition, offset).value();
    std::vector<std::string> read;
    for (;;) {
      const auto events = reader->Next(kMaxReadEvents, absl::ZeroDuration());
      EXPECT_TRUE(events.ok()) << events.status();
      if (!events.ok() || events->empty()) return read;
      for (const Event& event : *events) read.push_back(absl::StrCat(event.offset, event.body));
    }
  }

  // Writes to the database directly.
  void Change(const std::function<void(muster::rocksdb::Database*)>& change) {
    const auto database = muster::rocksdb::Database::Open(dir_, StreamDatabase({})).value();
    change(database.get());
  }
  void FlipAByte(FamilyIndex family, const std::string& key, size_t at = 12) {
    Change([&](muster::rocksdb::Database* database) {
      std::string record;
      ASSERT_TRUE(database->db()->Get({}, database->family(family), key, &record).ok());
      record[at] = static_cast<char>(record[at] ^ 1);
      ASSERT_TRUE(database->db()->Put({}, database->family(family), key, record).ok());
    });
  }
  void Remove(FamilyIndex family, const std::string& key) {
    Change([&](muster::rocksdb::Database* database) {
      ASSERT_TRUE(database->db()->Delete({}, database->family(family), key).ok());
    });
  }
  void Put(FamilyIndex family, const std::string& key, const std::string& value) {
    Change([&](muster::rocksdb::Database* database) {
      ASSERT_TRUE(database->db()->Put({}, database->family(family), key, value).ok());
    });
  }

  // "kind of name: why" of each damage.
  std::vector<std::string> Check(bool repair = false) {
    os::CollectedFindings findings;
    os::Quarantine quarantine(root_.path());
    const auto summary = CheckStreams(dir_, {.check = {&findings, repair ? &quarantine : nullptr}});
    EXPECT_TRUE(summary.ok()) << summary.status();
    if (summary.ok()) records_ = summary->records;
    if (repair) kept_ = quarantine.path();
    std::vector<std::string> lines;
    for (const os::Damage& damage : findings.all) {
      EXPECT_EQ(damage.part, "stream");
      EXPECT_FALSE(damage.remedy.empty());
      remedy_ = damage.remedy;
      lines.push_back(absl::StrCat(damage.kind, " of ", damage.name, ": ", damage.why));
    }
    return lines;
  }
  // A check only reports the damage, and a repair mends it; returns the report.
  std::vector<std::string> Mend() {
    const std::vector<std::string> seen = Check();
    EXPECT_FALSE(seen.empty());
    EXPECT_EQ(Check(), seen) << "a look changes nothing";
    EXPECT_EQ(Check(/*repair=*/true), seen);
    EXPECT_THAT(Check(), IsEmpty());
    Open();
    return seen;
  }

  const os::TempDir root_;
  const std::string dir_ = root_ / "stream";
  base::FakeClock clock_;
  const PartitionId first_{.stream = 1, .partition = 0};
  std::unique_ptr<RocksDbEventStreamStore> store_;
  uint64_t records_ = 0;
  std::string kept_;
  std::string remedy_;
};

TEST_F(StreamCheckTest, FindsNothingInASoundStoreAndCountsAllRecords) {
  EXPECT_THAT(Check(), IsEmpty());
  EXPECT_EQ(records_, 8u) << "the store, a stream, and six events";
  EXPECT_EQ(CheckStreams(root_ / "none", {}).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(StreamCheckTest, FindsNothingInAStreamWhoseRetentionHasPassed) {
  Open();
  clock_.AwaitSleepers(1);
  clock_.Advance(absl::Hours(2));
  Append("homes", 0, "late");
  while (store_->Extent("homes", 0)->first < 6) base::LetOthersRun();
  store_.reset();
  EXPECT_THAT(Check(), IsEmpty());
}

TEST_F(StreamCheckTest, ADamagedEventIsLostAndReadersPassOverIt) {
  FlipAByte(kEvents, EventKey(first_, 3));
  EXPECT_THAT(Mend(), ElementsAre("event of stream 'homes' partition 0 event 3: it is damaged"));
  EXPECT_THAT(Read("homes", 0), ElementsAre("1a", "2b", "4d", "5e"));
  EXPECT_THAT(Read("homes", 0, 3), ElementsAre("4d", "5e"));
  EXPECT_EQ(Append("homes", 0, "g"), 6);
  const std::string kept = kept_ + "/records.jsonl";
  EXPECT_TRUE(std::filesystem::exists(kept)) << "the damaged bytes are kept";
}

TEST_F(StreamCheckTest, MissingEventsAreLostTogetherAndAReaderMayBeginAmongThem) {
  for (const int64_t offset : {2, 3, 4}) Remove(kEvents, EventKey(first_, offset));
  EXPECT_THAT(Mend(),
              ElementsAre("event of stream 'homes' partition 0 events 2 to 4: they are not there"));
  EXPECT_THAT(Read("homes", 0), ElementsAre("1a", "5e"));
  for (const int64_t offset : {2, 3, 4}) {
    EXPECT_THAT(Read("homes", 0, offset), ElementsAre("5e"));
  }
}

TEST_F(StreamCheckTest, AReaderWaitsBehindLostEventsAtTheEndAndGetsWhatComes) {
  FlipAByte(kEvents, EventKey(first_, 5));
  EXPECT_THAT(Mend(), ElementsAre(HasSubstr("partition 0 event 5")));
  const auto reader = store_->OpenReader("homes", 0, 4).value();
  EXPECT_EQ(reader->Next(10, absl::ZeroDuration())->size(), 1u);
  EXPECT_THAT(*reader->Next(10, absl::ZeroDuration()), IsEmpty());
  EXPECT_EQ(Append("homes", 0, "g"), 6) << "the offset of the lost event is not given again";
  EXPECT_EQ(reader->Next(10, absl::ZeroDuration())->front().offset, 6);
}

TEST_F(StreamCheckTest, RetentionRemovesLostEventsWithTheirNeighbours) {
  for (const int64_t offset : {2, 3, 4}) Remove(kEvents, EventKey(first_, offset));
  Mend();
  clock_.AwaitSleepers(1);
  clock_.Advance(absl::Hours(2));
  Append("homes", 0, "late");
  while (store_->Extent("homes", 0)->first < 6) base::LetOthersRun();
  EXPECT_THAT(Read("homes", 0, 6), ElementsAre("6late"));
  store_.reset();
  EXPECT_THAT(Check(), IsEmpty());
}

TEST_F(StreamCheckTest, EventsThatThePartitionRecordKnowsOfAreMissedAtTheEnd) {
  const std::string key = PartitionKey(first_);
  Put(kMeta, key, EncodePartition({.first = 2, .next = 8, .end_bytes = 300}, key));
  EXPECT_THAT(Mend(),
              ElementsAre("event of stream 'homes' partition 0 events 6 to 7: they are not there"));
  EXPECT_EQ(Append("homes", 0, "g"), 8);
  EXPECT_THAT(Read("homes", 0, 5), ElementsAre("5e", "8g"));
}

TEST_F(StreamCheckTest, APartitionThatShouldHaveEventsAndHasNoneLosesThemAll) {
  const PartitionId second{.stream = 1, .partition = 1};
  const std::string key = PartitionKey(second);
  Remove(kEvents, EventKey(second, 1));
  Put(kMeta, key, EncodePartition({.first = 3, .next = 9, .end_bytes = 300}, key));
  EXPECT_THAT(Mend(),
              ElementsAre("event of stream 'homes' partition 1 events 3 to 8: they are not there"));
  EXPECT_THAT(Read("homes", 1, 3), IsEmpty());
  EXPECT_EQ(Append("homes", 1, "g"), 9);
}

TEST_F(StreamCheckTest, ADamagedPartitionRecordIsMadeAgainFromItsEvents) {
  const std::string key = PartitionKey(first_);
  for (const int64_t offset : {1, 2}) Remove(kEvents, EventKey(first_, offset));
  Put(kMeta, key, EncodePartition({.first = 3, .next = 6, .end_bytes = 300}, key));
  FlipAByte(kMeta, key);
  EXPECT_THAT(Mend(),
              ElementsAre("partition of stream 'homes' partition 0: its record is damaged"));
  EXPECT_EQ(store_->Extent("homes", 0)->first, 3);
  EXPECT_THAT(Read("homes", 0, 3), ElementsAre("3c", "4d", "5e"));
}

TEST_F(StreamCheckTest, ADamagedStreamRecordIsMadeAgainAndTheEventsStayForEver) {
  FlipAByte(kMeta, StreamKey("homes"));
  EXPECT_THAT(Mend(), ElementsAre("stream of stream 'homes': its record is damaged"));
  EXPECT_EQ(remedy_,
            "is made again with 2 partitions, as events are in, and keeps events for ever");
  EXPECT_EQ(store_->Describe("homes")->partitions, 2);
  EXPECT_EQ(store_->Describe("homes")->retention, absl::InfiniteDuration());
  EXPECT_THAT(Read("homes", 0), ElementsAre("1a", "2b", "3c", "4d", "5e"));
  EXPECT_THAT(Read("homes", 1), ElementsAre("1f"));
}

TEST_F(StreamCheckTest, OfSeveralDamagedStreamRecordsEachStreamGetsAnotherName) {
  Open();
  ASSERT_TRUE(store_->Create("other", {.partitions = 1}).ok());
  Append("other", 0, "x");
  store_.reset();
  for (const char* name : {"homes", "other"}) FlipAByte(kMeta, StreamKey(name));
  EXPECT_THAT(Mend(), ElementsAre("stream of stream 'homes': its record is damaged",
                                  "stream of stream 'other': its record is damaged",
                                  "stream of stream 'recovered-1': its record is not there",
                                  "stream of stream 'recovered-2': its record is not there"));
  EXPECT_THAT(*store_->List(), ElementsAre("recovered-1", "recovered-2"));
  EXPECT_THAT(Read("recovered-1", 0), ElementsAre("1a", "2b", "3c", "4d", "5e"));
  EXPECT_THAT(Read("recovered-2", 0), ElementsAre("1x"));
}

TEST_F(StreamCheckTest, ADamagedStoreRecordGivesNoNumberAgain) {
  FlipAByte(kMeta, StoreKey());
  EXPECT_THAT(Mend(), ElementsAre("store of the event streams: it is damaged"));
  ASSERT_TRUE(store_->Create("other", {.partitions = 1}).ok());
  EXPECT_THAT(Read("other", 0), IsEmpty());
  EXPECT_THAT(Read("homes", 1), ElementsAre("1f"));
}

TEST_F(StreamCheckTest, RecordsThatBelongToNothingAreTakenAway) {
  Put(kEvents, "no key", "x");
  Put(kEvents, EventKey({.stream = 1, .partition = 7}, 1), "x");
  Put(kEvents, EventKey({.stream = 9, .partition = 0}, 1), "x");
  Put(kMeta, "what", "x");
  EXPECT_EQ(Mend().size(), 4u);
  EXPECT_THAT(*store_->List(), ElementsAre("homes"));
  EXPECT_THAT(Read("homes", 0), ElementsAre("1a", "2b", "3c", "4d", "5e"));
}

TEST_F(StreamCheckTest, ARepairRefusesAStoreThatIsInUse) {
  Open();
  os::CollectedFindings findings;
  os::Quarantine quarantine(root_.path());
  EXPECT_EQ(CheckStreams(dir_, {.check = {&findings, &quarantine}}).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

// A table file whose bytes are damaged on the disk: its blocks have checksums of their own.
TEST_F(StreamCheckTest, ADamagedBlockOfATableCostsItsEventsAndNoOthers) {
  Open();
  ASSERT_TRUE(store_->Create("large", {.partitions = 1}).ok());
  for (int i = 0; i < 200; ++i)
    Append("large", 0, std::string(2000, static_cast<char>('a' + i % 26)));
  store_.reset();
  Change([](muster::rocksdb::Database* database) {
    ASSERT_TRUE(database->db()->Flush({}, database->family(kEvents)).ok());
  });
  std::filesystem::path table;
  for (const auto& file : std::filesystem::directory_iterator(dir_)) {
    const bool larger = file.path().extension() == ".sst" &&
                        (table.empty() || file.file_size() > std::filesystem::file_size(table));
    if (larger) table = file.path();
  }
  ASSERT_FALSE(table.empty());
  {
    std::fstream bytes(table, std::ios::in | std::ios::out | std::ios::binary);
    bytes.seekp(static_cast<std::streamoff>(std::filesystem::file_size(table) / 4));
    bytes.write("damage", 6);
  }
  EXPECT_THAT(Check(), ::testing::Contains(HasSubstr("stream 'large' partition 0 event")));
  Check(/*repair=*/true);
  EXPECT_THAT(Check(), IsEmpty());
  Open();
  EXPECT_THAT(Read("homes", 0), ElementsAre("1a", "2b", "3c", "4d", "5e"));
  const size_t left = Read("large", 0).size();
  EXPECT_LT(left, 200u);
  EXPECT_GT(left, 190u) << "a block of 4 to 16 KiB";
  EXPECT_EQ(Append("large", 0, "x"), 201);
}

}  // namespace
}  // namespace muster::stream::rocksdb
