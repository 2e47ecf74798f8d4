// SPDX-License-Identifier: Apache-2.0

// Changes bytes of a report's file. A read gives what was counted, or DataLoss, and never another
// number.
#include "muster/base/damage.h"

#include <sqlite3.h>

#include <cstdint>
#include <fstream>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/os/quarantine.h"
#include "muster/os/temp_dir.h"
#include "muster/report/report_store.h"
#include "muster/report/sqlite/page_sums.h"
#include "muster/report/sqlite/report_check.h"
#include "muster/report/sqlite/sqlite_report_store.h"
#include "tests/fakes/os/collected_findings.h"

namespace muster::report::sqlite {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr int kBatches = 3;
constexpr int kItems = 40;
constexpr int kCustomersOfItem = 25;
constexpr int kCopies = 300;  // of each kind

report::BatchShape Shape(uint64_t batch) {
  return {batch,
          "retail",
          "r1",
          {{"by_customer", {"customer"}, {{"revenue", false, 3}, {"units", true, 0}}}}};
}

report::CountedItem Item(uint64_t batch, uint64_t index) {
  report::CountedItem item;
  item.batch = batch;
  item.index = index;
  item.transactions = kCustomersOfItem + 1;
  item.aggregated = kCustomersOfItem;
  item.rejected = 1;
  item.content = base::Fingerprint(absl::StrCat(index));
  item.result = base::Fingerprint(absl::StrCat("result ", index));
  item.attempts = 1;
  item.handler_version = "v1";
  item.worker = "w";
  report::GroupPartial partial{"by_customer", {}};
  for (int i = 0; i < kCustomersOfItem; ++i) {
    const uint64_t customer = (index * kCustomersOfItem + static_cast<uint64_t>(i)) * 7919 % 700;
    partial.rows.push_back({{absl::StrCat(customer)},
                            {*base::Decimal::Parse(absl::StrCat(index, ".", 100 + i)),
                             base::Decimal::FromInt(i + 1)}});
  }
  item.groups = {std::move(partial)};
  item.rejections = {{static_cast<int64_t>(index) + 2, "price: 'x'"}};
  return item;
}

void WriteBatches(const std::string& path) {
  const auto store = OpenSqliteReport(path).value();
  for (uint64_t batch = 1; batch <= kBatches; ++batch) {
    ASSERT_TRUE(store->RegisterBatch(Shape(batch)).ok());
    std::vector<report::CountedItem> items;
    for (uint64_t i = 0; i < kItems; ++i) items.push_back(Item(batch, i));
    ASSERT_TRUE(store->Commit({"out", 1, items}).ok());
    report::BatchFacts facts;
    facts.batch = batch;
    facts.job = "retail";
    facts.job_revision = "r1";
    facts.handler_version = "v1";
    facts.items = kItems;
    facts.transactions = kItems * (kCustomersOfItem + 1);
    ASSERT_TRUE(store->Complete(facts).ok());
  }
}

std::string BytesOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void Write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// All that a report says of a batch, as text.
absl::StatusOr<std::string> ReadBatch(report::ReportReader& reader, uint64_t batch) {
  std::vector<std::string> lines;
  const absl::StatusOr<report::Progress> progress = reader.GetProgress(batch);
  if (!progress.ok()) return progress.status();
  lines.push_back(absl::StrCat(progress->job, " ", progress->transactions, " ",
                               progress->aggregated, " ", progress->rejected));
  report::RowVisitor visitor;
  visitor.on_group = [](const report::GroupShape&) { return absl::OkStatus(); };
  visitor.on_row = [&](const report::GroupRow& row) {
    lines.push_back(absl::StrCat(row.keys[0], " ", row.measures[0].ToString(), " ",
                                 row.measures[1].ToString()));
  };
  if (const absl::Status read = report::VisitRows(reader, batch, "", visitor); !read.ok()) {
    return read;
  }
  const absl::Status items = reader.ForEachItem(batch, [&](const report::ItemRow& item) {
    lines.push_back(absl::StrCat(item.index, " ", item.content.ToHex(), " ", item.worker));
  });
  if (!items.ok()) return items;
  const absl::StatusOr<report::StoredReceipt> receipt = reader.GetReceipt(batch);
  if (!receipt.ok()) return receipt.status();
  lines.push_back(receipt->text);
  return absl::StrJoin(lines, "\n");
}

absl::StatusOr<std::string> ReadAll(const std::string& path) {
  const auto store = OpenSqliteReport(path, {.read_only = true});
  if (!store.ok()) return store.status();
  const auto reader = (*store)->Read();
  if (!reader.ok()) return reader.status();
  const auto batches = (*reader)->Batches();
  if (!batches.ok()) return batches.status();
  std::string all = absl::StrCat(batches->size(), " batches\n");
  for (const report::Progress& progress : *batches) {
    const absl::StatusOr<std::string> batch = ReadBatch(**reader, progress.batch);
    if (!batch.ok()) return batch.status();
    absl::StrAppend(&all, *batch, "\n");
  }
  return all;
}

class ReportDamageTest : public ::testing::Test {
 protected:
  // Its findings; notes_, lacking_ and quarantine_ tell the rest.
  std::vector<std::string> Check(bool repair = false) {
    os::CollectedFindings findings;
    os::Quarantine quarantine(dir_.path());
    ReportCheckOptions options;
    options.check = {&findings, repair ? &quarantine : nullptr};
    options.ledger_batches = ledger_;
    const auto summary = CheckReport(path_, options);
    EXPECT_TRUE(summary.ok()) << summary.status();
    if (summary.ok()) lacking_ = summary->lacking;
    notes_ = findings.notes;
    if (repair) quarantine_ = quarantine.path();
    std::vector<std::string> lines;
    for (const os::Damage& damage : findings.all) {
      lines.push_back(absl::StrCat(damage.kind, " of ", damage.name, ": ", damage.why));
    }
    return lines;
  }

  std::vector<uint64_t> Batches() {
    const auto store = OpenSqliteReport(path_, {.read_only = true}).value();
    std::vector<uint64_t> numbers;
    const std::vector<report::Progress> batches = (*store->Read())->Batches().value();
    for (const report::Progress& batch : batches) numbers.push_back(batch.batch);
    return numbers;
  }

  // Each line of the report is one of `expected`.
  void ExpectPartOf(const std::string& expected) {
    const std::vector<std::string> known = absl::StrSplit(expected, '\n');
    const std::set<std::string> lines(known.begin(), known.end());
    for (const uint64_t batch : Batches()) {
      const auto store = OpenSqliteReport(path_, {.read_only = true}).value();
      const std::string read = ReadBatch(**store->Read(), batch).value();
      for (const absl::string_view line : absl::StrSplit(read, '\n')) {
        EXPECT_TRUE(lines.contains(std::string(line))) << line;
      }
    }
  }

  // Changes a digit of each `text` in the file, but at most `times` of them.
  void FlipIn(const std::string& text, int times) {
    std::string bytes = BytesOf(path_);
    size_t at = bytes.find(text);
    ASSERT_NE(at, std::string::npos);
    for (; times > 0 && at != std::string::npos; --times) {
      bytes[at] ^= 1;
      at = bytes.find(text, at);
    }
    Write(path_, bytes);
  }

  // Counters and versions that a backup changes, and that no number depends on.
  static bool HarmlessInHeader(size_t at) {
    return at == 18 || at == 19 || (at >= 24 && at < 28) || (at >= 40 && at < 44) ||
           (at >= 92 && at < 100);
  }

  const os::TempDir dir_;
  const std::string path_ = dir_ / "report.db";
  const std::vector<KnownBatch>* ledger_ = nullptr;
  std::vector<std::string> notes_;
  std::vector<uint64_t> lacking_;
  std::string quarantine_;
};

TEST_F(ReportDamageTest, ANumberThatWasChangedIsNeverRead) {
  WriteBatches(path_);
  const std::string sound = BytesOf(path_);
  const std::string expected = ReadAll(path_).value();
  std::mt19937_64 chance(20261123);
  int refused = 0;
  const uint64_t damage = base::DamageMet(base::Damaged::kReport);
  for (int copy = 0; copy < 2 * kCopies; ++copy) {
    std::string bytes = sound;
    const int flips = copy < kCopies ? 1 : 20;
    for (int i = 0; i < flips; ++i) {
      bytes[chance() % bytes.size()] ^= static_cast<char>(1 + chance() % 255);
    }
    Write(path_, bytes);
    const absl::StatusOr<std::string> read = ReadAll(path_);
    refused += read.ok() ? 0 : 1;
    if (read.ok()) {
      EXPECT_EQ(*read, expected) << "copy " << copy;
    } else {
      EXPECT_TRUE(absl::IsDataLoss(read.status())) << "copy " << copy << ": " << read.status();
    }
  }
  EXPECT_GT(refused, kCopies) << "most of what changes is read";
  EXPECT_GE(base::DamageMet(base::Damaged::kReport), damage + kCopies);
}

TEST_F(ReportDamageTest, NothingDependsOnTheBytesOfTheHeaderWithoutAChecksum) {
  WriteBatches(path_);
  const std::string sound = BytesOf(path_);
  const std::string expected = ReadAll(path_).value();
  for (size_t at = 0; at < kHeaderBytes; ++at) {
    if (!HarmlessInHeader(at)) continue;
    std::string bytes = sound;
    bytes[at] ^= 0x55;
    Write(path_, bytes);
    SCOPED_TRACE(absl::StrCat("byte ", at));
    const auto store = OpenSqliteReport(path_);
    ASSERT_TRUE(store.ok()) << store.status();
    EXPECT_TRUE((*store)->RegisterBatch(Shape(kBatches)).ok());  // writes
    EXPECT_EQ(ReadAll(path_).value(), expected);
  }
}

// As the sqlite3 shell has it, without page sums.
class Shell {
 public:
  explicit Shell(const std::string& path) {
    EXPECT_EQ(sqlite3_open(path.c_str(), &database_), SQLITE_OK);
  }
  ~Shell() { sqlite3_close_v2(database_); }
  Shell(const Shell&) = delete;
  Shell& operator=(const Shell&) = delete;

  // The first column of all rows; an error as text.
  std::vector<std::string> Do(const std::string& sql) {
    std::vector<std::string> rows;
    const auto add = [](void* to, int, char** values, char**) {
      static_cast<std::vector<std::string>*>(to)->emplace_back(values[0] ? values[0] : "");
      return 0;
    };
    if (sqlite3_exec(database_, sql.c_str(), add, &rows, nullptr) != SQLITE_OK) {
      return {sqlite3_errmsg(database_)};
    }
    return rows;
  }
  void BackUpTo(const std::string& path) {
    Shell copy(path);
    sqlite3_backup* const backup = sqlite3_backup_init(copy.database_, "main", database_, "main");
    EXPECT_EQ(sqlite3_backup_step(backup, -1), SQLITE_DONE);
    EXPECT_EQ(sqlite3_backup_finish(backup), SQLITE_OK);
  }

 private:
  sqlite3* database_ = nullptr;
};

// Makes of the report at `from` one as a muster without page sums made it.
void MakeOld(const std::string& from, const std::string& path) {
  Shell shell(path);
  ASSERT_THAT(shell.Do("PRAGMA journal_mode = WAL"), ElementsAre("wal"));
  ASSERT_THAT(shell.Do("ATTACH '" + from + "' AS new"), IsEmpty());
  for (const std::string& sql :
       shell.Do("SELECT sql FROM new.sqlite_master ORDER BY type = 'index'")) {
    ASSERT_THAT(shell.Do(sql), IsEmpty());
  }
  for (const std::string& table : shell.Do("SELECT name FROM sqlite_master WHERE type = 'table'")) {
    ASSERT_THAT(shell.Do("INSERT INTO main." + table + " SELECT * FROM new." + table), IsEmpty());
  }
  shell.Do(absl::StrCat("PRAGMA user_version = 1; PRAGMA application_id = ", kApplicationId));
}

TEST_F(ReportDamageTest, EveryChangedByteIsFoundAndMended) {
  WriteBatches(path_);
  const std::string sound = BytesOf(path_);
  const std::string expected = ReadAll(path_).value();
  std::mt19937_64 chance(20261124);
  for (int copy = 0; copy < 40; ++copy) {
    std::string bytes = sound;
    const size_t at = chance() % bytes.size();
    bytes[at] ^= static_cast<char>(1 + chance() % 255);
    Write(path_, bytes);
    SCOPED_TRACE(absl::StrCat("byte ", at));
    const std::vector<std::string> found = Check();
    if (HarmlessInHeader(at)) continue;
    ASSERT_THAT(found, Not(IsEmpty()));
    EXPECT_EQ(Check(/*repair=*/true), found);
    EXPECT_THAT(Check(), IsEmpty());
    EXPECT_EQ(BytesOf(quarantine_ + "/report/report.db"), bytes);
    // What is there is as it was; a batch that could not be saved is counted again as a new one is.
    ExpectPartOf(expected);
  }
}

TEST_F(ReportDamageTest, ARepairKeepsTheBatchesThatAreSound) {
  WriteBatches(path_);
  const std::string expected = ReadAll(path_).value();
  FlipIn("28.200", 1);  // a sum of each batch
  EXPECT_TRUE(absl::IsDataLoss(ReadAll(path_).status()));
  const std::vector<std::string> found = Check(/*repair=*/true);
  EXPECT_THAT(found, ElementsAre(HasSubstr("its checksum does not match"),
                                 HasSubstr("is damaged, its checksum does not match")));
  EXPECT_THAT(Batches(), SizeIs(kBatches - 1));
  ExpectPartOf(expected);
  // The lost one is counted again.
  WriteBatches(path_);
  EXPECT_THAT(Batches(), SizeIs(kBatches));
  EXPECT_THAT(Check(), IsEmpty());
}

TEST_F(ReportDamageTest, ABatchThatTheLedgerDoesNotKnowIsTakenAway) {
  WriteBatches(path_);
  const std::vector<KnownBatch> ledger = {{1, kItems, true}, {3, kItems + 1, true}, {4, 1, false}};
  ledger_ = &ledger;
  EXPECT_THAT(Check(), ElementsAre("batch of batch 2: the ledger does not know it",
                                   HasSubstr("it has 40 of the 41 items")));
  EXPECT_THAT(Check(/*repair=*/true), SizeIs(2));
  EXPECT_THAT(Batches(), ElementsAre(1, 3));
  EXPECT_THAT(lacking_, ElementsAre(3));
}

// A retention deletes it in small steps, and a check may come in between.
TEST_F(ReportDamageTest, ABatchThatItsRetentionHasBegunToDeleteIsNotDamaged) {
  WriteBatches(path_);
  {
    const auto store = OpenSqliteReport(path_).value();
    ASSERT_FALSE(store->ForgetBatch(2, 10).value());
  }
  std::vector<KnownBatch> ledger = {{1, kItems, true}, {2, kItems, true}, {3, kItems, true}};
  ledger_ = &ledger;
  EXPECT_THAT(Check(), SizeIs(1));
  ledger[1].items_deleted = true;
  EXPECT_THAT(Check(), IsEmpty());
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("batch 2 is not whole")));
  EXPECT_THAT(Check(/*repair=*/true), IsEmpty());
  EXPECT_THAT(Batches(), ElementsAre(1, 2, 3));
  EXPECT_THAT(lacking_, IsEmpty());
}

TEST_F(ReportDamageTest, ALogWithDamageBeforeItsLastCommitIsNotReadAsAShorterOne) {
  const os::TempDir other;
  const std::string live = other / "report.db";
  {
    const auto store = OpenSqliteReport(live).value();
    for (uint64_t batch = 1; batch <= kBatches; ++batch) {
      ASSERT_TRUE(store->RegisterBatch(Shape(batch)).ok());
      ASSERT_TRUE(store->Commit({"out", 1, {Item(batch, 0)}}).ok());
    }
    Write(path_, BytesOf(live));  // as a crash leaves it
    Write(path_ + "-wal", BytesOf(live + "-wal"));
  }
  const std::string log = BytesOf(path_ + "-wal");
  EXPECT_THAT(Check(), IsEmpty());
  std::string damaged = log;
  damaged[log.size() / 3] ^= 1;
  Write(path_ + "-wal", damaged);
  EXPECT_TRUE(absl::IsDataLoss(OpenSqliteReport(path_).status()));
  EXPECT_TRUE(absl::IsDataLoss(OpenSqliteReport(path_, {.read_only = true}).status()));
  EXPECT_THAT(Check(/*repair=*/true), Contains(HasSubstr("commits follow a record")));
  EXPECT_EQ(BytesOf(quarantine_ + "/report/report.db-wal"), damaged);
  EXPECT_TRUE(OpenSqliteReport(path_).ok());
  EXPECT_THAT(Check(), IsEmpty());
}

TEST_F(ReportDamageTest, ALogThatWasCutShortIsWhatACrashLeaves) {
  const os::TempDir other;
  const std::string live = other / "report.db";
  const auto store = OpenSqliteReport(live).value();
  ASSERT_TRUE(store->RegisterBatch(Shape(1)).ok());
  ASSERT_TRUE(store->Commit({"out", 1, {Item(1, 0)}}).ok());
  const std::string log = BytesOf(live + "-wal");
  for (size_t left = 0; left < log.size(); left += 997) {
    Write(path_, BytesOf(live));
    Write(path_ + "-wal", log.substr(0, left));
    EXPECT_TRUE(OpenSqliteReport(path_).ok()) << left;
  }
}

TEST_F(ReportDamageTest, PeopleReadAndBackUpWithTheShellAndDoNotWrite) {
  WriteBatches(path_);
  const std::string expected = ReadAll(path_).value();
  const std::string backup = dir_ / "backup.db";
  {
    Shell shell(path_);
    EXPECT_THAT(shell.Do("SELECT count(*) FROM muster_batches"), ElementsAre("3"));
    EXPECT_THAT(shell.Do("PRAGMA integrity_check"), ElementsAre("ok"));
    EXPECT_THAT(shell.Do("UPDATE muster_batch SET job = 'x'"), ElementsAre(HasSubstr("readonly")));
    shell.BackUpTo(backup);
  }
  EXPECT_EQ(ReadAll(path_).value(), expected);
  EXPECT_EQ(ReadAll(backup).value(), expected);
  EXPECT_TRUE(OpenSqliteReport(backup)->get()->RegisterBatch(Shape(4)).ok());
}

TEST_F(ReportDamageTest, AShellThatMovesTheLogIntoTheFileLeavesItReadable) {
  const os::TempDir other;
  const std::string live = other / "report.db";
  std::string expected;
  {
    const auto store = OpenSqliteReport(live).value();
    ASSERT_TRUE(store->RegisterBatch(Shape(1)).ok());
    Write(path_, BytesOf(live));
    Write(path_ + "-wal", BytesOf(live + "-wal"));
  }
  EXPECT_THAT(Shell(path_).Do("SELECT job FROM muster_batch"), ElementsAre("retail"));
  EXPECT_EQ(BytesOf(path_ + "-wal"), "");
  EXPECT_THAT(Batches(), ElementsAre(1));
  EXPECT_THAT(Check(), IsEmpty());
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("another program wrote")));
  EXPECT_THAT(Check(/*repair=*/true), IsEmpty());
  EXPECT_THAT(Batches(), ElementsAre(1));
  Check();
  EXPECT_THAT(notes_, IsEmpty());
}

TEST_F(ReportDamageTest, AReportOfAnOlderMusterIsReadAndWrittenAndGetsSums) {
  const std::string made = dir_ / "new.db";
  WriteBatches(made);
  MakeOld(made, path_);
  EXPECT_EQ(ReadAll(path_).value(), ReadAll(made).value());
  WriteBatches(path_);
  EXPECT_THAT(Check(), IsEmpty());
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("an older muster made it")));
  EXPECT_FALSE(HasPageSums(BytesOf(path_)));
  // What its receipts prove is checked without sums, too.
  const std::string sound = BytesOf(path_);
  FlipIn("28.200", 100);
  EXPECT_THAT(Check(), SizeIs(kBatches));
  Write(path_, sound);
  const std::string expected = ReadAll(path_).value();
  EXPECT_THAT(Check(/*repair=*/true), IsEmpty());
  EXPECT_TRUE(HasPageSums(BytesOf(path_)));
  EXPECT_EQ(ReadAll(path_).value(), expected);
  EXPECT_THAT(Check(), IsEmpty());
  EXPECT_THAT(notes_, IsEmpty());
}

}  // namespace
}  // namespace muster::report::sqlite
