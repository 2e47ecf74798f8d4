// SPDX-License-Identifier: Apache-2.0

// Damages each kind of stored record of a real store: the check names it, and a repair mends it at
// the cost of that record alone.
#include "muster/queue/rocksdb/check.h"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/os/quarantine.h"
#include "muster/os/temp_dir.h"
#include "muster/queue/rocksdb/codec.h"
#include "muster/queue/rocksdb/rocksdb_queue_store.h"
#include "muster/queue/rocksdb/storage.h"
#include "rocksdb/db.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/os/collected_findings.h"

namespace muster::queue::rocksdb {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The queue is "acme/work", number 1. It holds "a", "b", "c" (sequences 0, 1, 2, put with the dedup
// ids "0", "1", "2"), and "poison" (sequence 3).
class QueueCheckTest : public ::testing::Test {
 protected:
  QueueCheckTest() {
    Open();
    EXPECT_TRUE(store_->CreateQueue(queue_, {}).ok());
    for (const char* body : {"a", "b", "c"}) Put(body, absl::StrCat(seq_++));
    queue::DeadLetterRequest request;
    request.receipt = Put("poison", "").receipt;
    request.cause.reason = "no luck";
    EXPECT_TRUE(store_->DeadLetter(queue_, {request})->front().ok());
    store_.reset();
  }

  void Open() {
    Options options;
    options.clock = &clock_;
    auto store = RocksDbQueueStore::Open(dir_, options);
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }

  queue::PutResult Put(const std::string& body, const std::string& dedup_id) {
    std::vector<queue::NewMessage> messages(1);
    messages[0].body = body;
    messages[0].dedup_id = dedup_id;
    return store_->Put(queue_, messages)->front();
  }

  std::vector<std::string> Bodies(const queue::QueueId& queue) {
    std::vector<std::string> bodies;
    const auto messages = store_->Receive(queue, {32, absl::Seconds(30)});
    EXPECT_TRUE(messages.ok()) << messages.status();
    for (const auto& message : *messages) bodies.push_back(message.body);
    return bodies;
  }
  std::vector<std::string> Bodies() { return Bodies(queue_); }

  // Writes to the database directly.
  void Change(const std::function<void(muster::rocksdb::Database*)>& change) {
    const auto database = muster::rocksdb::Database::Open(dir_, QueueDatabase({})).value();
    change(database.get());
  }
  void FlipAByte(FamilyIndex family, const std::string& key, size_t at = 2) {
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

  // "kind name: why" of each damage.
  std::vector<std::string> Check(bool repair = false) {
    os::CollectedFindings findings;
    os::Quarantine quarantine(root_.path());
    QueueCheckOptions options;
    options.check = {&findings, repair ? &quarantine : nullptr};
    options.account = "acme";
    options.clock = &clock_;
    options.check_body = check_body_;
    const auto summary = CheckQueues(dir_, options);
    EXPECT_TRUE(summary.ok()) << summary.status();
    if (summary.ok()) records_ = summary->records;
    kept_ = quarantine.path();
    std::vector<std::string> lines;
    for (const os::Damage& damage : findings.all) {
      EXPECT_EQ(damage.part, "queue");
      EXPECT_FALSE(damage.remedy.empty());
      remedy_ = damage.remedy;
      lines.push_back(absl::StrCat(damage.kind, " of ", damage.name, ": ", damage.why));
    }
    return lines;
  }

  // Expects exactly one damage, which a check only reports and a repair mends; returns the report.
  std::string Mend() {
    const std::vector<std::string> seen = Check();
    EXPECT_EQ(seen.size(), 1u) << ::testing::PrintToString(seen);
    EXPECT_EQ(Check(), seen) << "a look changes nothing";
    EXPECT_EQ(Check(/*repair=*/true), seen);
    EXPECT_THAT(Check(), IsEmpty());
    Open();
    return seen.empty() ? "" : seen.front();
  }

  const os::TempDir root_;
  const std::string dir_ = root_ / "queue";
  const queue::QueueId queue_{"acme", "work"};
  int seq_ = 0;
  base::FakeClock clock_;
  std::unique_ptr<RocksDbQueueStore> store_;
  std::function<absl::Status(const queue::QueueId&, absl::string_view)> check_body_;
  uint64_t records_ = 0;
  std::string remedy_;  // of the last damage
  std::string kept_;
};

TEST_F(QueueCheckTest, FindsNothingInASoundStore) {
  EXPECT_THAT(Check(), IsEmpty());
  EXPECT_THAT(Check(/*repair=*/true), IsEmpty());
  // Store, queue and counters; state and body of three; poison and its body; three dedup ids.
  EXPECT_EQ(records_, 3u + 6u + 2u + 3u);
  EXPECT_EQ(kept_, "");
}

TEST_F(QueueCheckTest, FindsNothingAfterMessagesWereTakenClearedAndPurged) {
  Open();
  ASSERT_TRUE(store_->Receive(queue_, {1, absl::Seconds(30)}).ok());
  ASSERT_TRUE(store_->PurgePoison(queue_).ok());
  ASSERT_TRUE(store_->Clear(queue_).ok());
  store_.reset();
  EXPECT_THAT(Check(), IsEmpty());
}

TEST_F(QueueCheckTest, RefusesAStoreThatIsOpen) {
  Open();
  os::CollectedFindings findings;
  QueueCheckOptions options;
  options.check.findings = &findings;
  options.clock = &clock_;
  os::Quarantine quarantine(root_.path());
  options.check.quarantine = &quarantine;
  EXPECT_TRUE(absl::IsFailedPrecondition(CheckQueues(dir_, options).status()));
}

TEST_F(QueueCheckTest, TakesAwayAMessageWhoseBodyIsDamaged) {
  FlipAByte(kBody, MessageKey(1, 1), 9);
  EXPECT_THAT(Mend(), HasSubstr("body of queue 'acme/work' message "));
  EXPECT_THAT(Bodies(), ElementsAre("a", "c"));
}

TEST_F(QueueCheckTest, TakesAwayAMessageWhoseBodyIsNotThere) {
  Remove(kBody, MessageKey(1, 1));
  EXPECT_THAT(Mend(), HasSubstr("it is not there"));
  EXPECT_THAT(Bodies(), ElementsAre("a", "c"));
}

TEST_F(QueueCheckTest, TakesAwayAMessageWhoseBodySaysNothingThatMakesSense) {
  check_body_ = [](const queue::QueueId& queue, absl::string_view body) {
    return queue.name == "work" && body == "b" ? absl::DataLossError("its blob is gone")
                                               : absl::OkStatus();
  };
  EXPECT_THAT(Mend(), HasSubstr("its blob is gone"));
  EXPECT_THAT(Bodies(), ElementsAre("a", "c"));
}

TEST_F(QueueCheckTest, KeepsAMessageWhoseStateIsDamaged) {
  FlipAByte(kState, MessageKey(1, 1));
  EXPECT_THAT(Mend(), HasSubstr("state of queue 'acme/work' message "));
  EXPECT_THAT(Bodies(), ::testing::UnorderedElementsAre("a", "b", "c"));
}

TEST_F(QueueCheckTest, KeepsAMessageWhoseStateIsNotThere) {
  Remove(kState, MessageKey(1, 1));
  EXPECT_THAT(Mend(), HasSubstr("it is not there"));
  EXPECT_THAT(Bodies(), ::testing::UnorderedElementsAre("a", "b", "c"));
}

TEST_F(QueueCheckTest, KeepsAPoisonMessageWhoseCauseIsDamaged) {
  FlipAByte(kPoison, MessageKey(1, 3));
  EXPECT_THAT(Mend(), HasSubstr("poison of queue 'acme/work' message "));
  EXPECT_EQ(store_->ListPoison(queue_, "", 10)->front().body, "poison");
  EXPECT_EQ(store_->Redrive(queue_, {}, 10).value(), 1);
}

TEST_F(QueueCheckTest, TakesAwayAPoisonMessageWhoseBodyIsDamaged) {
  FlipAByte(kBody, PoisonBodyKey(1, 3), 9);
  EXPECT_THAT(Mend(), HasSubstr("poison body of queue 'acme/work' message "));
  EXPECT_THAT(store_->ListPoison(queue_, "", 10).value(), IsEmpty());
  EXPECT_THAT(Bodies(), ElementsAre("a", "b", "c"));
}

TEST_F(QueueCheckTest, TakesAwayAPoisonMessageWhoseBodySaysNothingThatMakesSense) {
  check_body_ = [](const queue::QueueId& queue, absl::string_view body) {
    return queue.name == "work" && body == "poison" ? absl::DataLossError("its blob is gone")
                                                    : absl::OkStatus();
  };
  EXPECT_THAT(Mend(), ::testing::AllOf(HasSubstr("poison body of queue 'acme/work' message "),
                                       HasSubstr("its blob is gone")));
  EXPECT_THAT(store_->ListPoison(queue_, "", 10).value(), IsEmpty());
}

TEST_F(QueueCheckTest, TakesAwayADamagedDedupRecord) {
  FlipAByte(kDedup, DedupKey(1, "1"));
  EXPECT_THAT(Mend(), HasSubstr("dedup id '1'"));
  EXPECT_TRUE(Put("a", "0").duplicate);
}

TEST_F(QueueCheckTest, CountsAgainWhenTheCountersAreDamaged) {
  FlipAByte(kMeta, CountersKey(1));
  EXPECT_THAT(Mend(), HasSubstr("counters of queue 'acme/work'"));
  EXPECT_EQ(store_->Stats(queue_)->total_in, 4);
  Put("d", "");
  EXPECT_THAT(Bodies(), ElementsAre("a", "b", "c", "d"));
}

TEST_F(QueueCheckTest, NoticesCountersThatDisagreeWithWhatIsThere) {
  Change([](muster::rocksdb::Database* database) {
    Counters counters;
    counters.in = 2;
    counters.next_seq = 9;
    ASSERT_TRUE(database->db()
                    ->Put({}, database->family(kMeta), CountersKey(1), EncodeCounters(counters))
                    .ok());
  });
  EXPECT_THAT(Mend(), HasSubstr("they know of 2 messages, and 4 are there"));
}

TEST_F(QueueCheckTest, NoticesCountersThatWouldGiveASequenceAgain) {
  Change([](muster::rocksdb::Database* database) {
    Counters counters;
    counters.in = 4;
    counters.next_seq = 2;
    ASSERT_TRUE(database->db()
                    ->Put({}, database->family(kMeta), CountersKey(1), EncodeCounters(counters))
                    .ok());
  });
  EXPECT_THAT(Mend(), HasSubstr("they would give sequence 2 again; 3 was given"));
}

TEST_F(QueueCheckTest, GivesAQueueWhoseRecordIsDamagedAnotherName) {
  FlipAByte(kMeta, QueueKey(1));
  EXPECT_THAT(Mend(), HasSubstr("queue of queue 1"));
  EXPECT_THAT(Bodies({"acme", "recovered-1"}), ElementsAre("a", "b", "c"));
  EXPECT_TRUE(store_->CreateQueue(queue_, {}).ok());
}

TEST_F(QueueCheckTest, GivesAQueueWhoseRecordIsNotThereAnotherName) {
  Remove(kMeta, QueueKey(1));
  EXPECT_THAT(Mend(), HasSubstr("queue of queue 1: it is not there"));
  EXPECT_THAT(Bodies({"acme", "recovered-1"}), ElementsAre("a", "b", "c"));
  EXPECT_EQ(store_->ListPoison({"acme", "recovered-1"}, "", 10)->front().body, "poison");
  EXPECT_TRUE(store_->CreateQueue(queue_, {}).ok());
  EXPECT_THAT(Bodies(), IsEmpty());
}

// Any remaining record of a queue shows that the queue existed.
TEST_F(QueueCheckTest, KeepsTheMessagesOfAQueueOfWhichMoreIsNotThere) {
  Remove(kMeta, QueueKey(1));
  Remove(kMeta, CountersKey(1));
  Remove(kMeta, StoreKey());
  EXPECT_EQ(Check(/*repair=*/true).size(), 3u);
  EXPECT_THAT(Check(), IsEmpty());
  Open();
  EXPECT_THAT(Bodies({"acme", "recovered-1"}), ElementsAre("a", "b", "c"));
  EXPECT_TRUE(store_->CreateQueue(queue_, {}).ok());
  EXPECT_THAT(Bodies(), IsEmpty());
}

TEST_F(QueueCheckTest, KeepsIdsWhenOnlyTheNextQueueNumberIsTooLow) {
  StoreRecord record;
  Change([&](muster::rocksdb::Database* database) {
    std::string stored;
    ASSERT_TRUE(database->db()->Get({}, database->family(kMeta), StoreKey(), &stored).ok());
    record = DecodeStore(stored).value();
    record.next_queue = 1;
    ASSERT_TRUE(
        database->db()->Put({}, database->family(kMeta), StoreKey(), EncodeStore(record)).ok());
  });
  EXPECT_THAT(Mend(), HasSubstr("it would give number 1 to another queue"));
  EXPECT_EQ(remedy_, "the next queue gets number 2");
}

TEST_F(QueueCheckTest, MakesADamagedStoreRecordAgain) {
  FlipAByte(kMeta, StoreKey());
  EXPECT_THAT(Mend(), HasSubstr("the store record: it is damaged"));
  EXPECT_THAT(Bodies(), ElementsAre("a", "b", "c"));
  const queue::QueueId second{"acme", "second"};
  EXPECT_TRUE(store_->CreateQueue(second, {}).ok());
  EXPECT_THAT(Bodies(second), IsEmpty());
}

TEST_F(QueueCheckTest, LeavesTheFilesOfANewerMusterAlone) {
  Change([](muster::rocksdb::Database* database) {
    ASSERT_TRUE(database->db()
                    ->Put({}, database->family(kMeta), StoreKey(),
                          std::string(1, kFormatVersion + 1) + "whatever comes")
                    .ok());
  });
  os::CollectedFindings findings;
  os::Quarantine quarantine(root_.path());
  QueueCheckOptions options;
  options.check = {&findings, &quarantine};
  options.clock = &clock_;
  const absl::Status status = CheckQueues(dir_, options).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("newer muster"));
}

TEST_F(QueueCheckTest, TakesAwayWhatBelongsToNoQueue) {
  Change([](muster::rocksdb::Database* database) {
    const auto put = [&](FamilyIndex family, const std::string& key) {
      ASSERT_TRUE(database->db()->Put({}, database->family(family), key, "x").ok());
    };
    put(kState, MessageKey(7, 0));
    put(kBody, MessageKey(7, 0));
    put(kBody, PoisonBodyKey(7, 0));
    put(kPoison, "short");
    put(kDedup, DedupKey(7, "id"));
    put(kMeta, CountersKey(7));
    put(kMeta, "x");
  });
  EXPECT_EQ(Check(/*repair=*/true).size(), 7u);
  EXPECT_THAT(Check(), IsEmpty());
  Open();
  EXPECT_THAT(Bodies(), ElementsAre("a", "b", "c"));
}

// Changes a byte in each kind of record.
TEST_F(QueueCheckTest, OpensAgainAfterDamageOfEveryKindAtOnce) {
  FlipAByte(kMeta, StoreKey());
  FlipAByte(kMeta, QueueKey(1));
  FlipAByte(kMeta, CountersKey(1));
  FlipAByte(kState, MessageKey(1, 0));
  FlipAByte(kBody, MessageKey(1, 1), 9);
  FlipAByte(kPoison, MessageKey(1, 3));
  FlipAByte(kDedup, DedupKey(1, "2"));
  EXPECT_EQ(Check(/*repair=*/true).size(), 7u);
  EXPECT_THAT(kept_, HasSubstr("damaged/1"));
  EXPECT_TRUE(std::filesystem::exists(kept_ + "/records.jsonl"));
  EXPECT_THAT(Check(), IsEmpty());
  Open();
  EXPECT_THAT(Bodies({"acme", "recovered-1"}), ::testing::UnorderedElementsAre("a", "c"));
}

}  // namespace
}  // namespace muster::queue::rocksdb
