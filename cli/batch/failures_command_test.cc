// SPDX-License-Identifier: Apache-2.0

// muster batch rejections | dead-letters, here and on a server.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/batch/batch_admin.h"
#include "cli/batch/failures.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/fingerprint.h"
#include "muster/job/job_file.h"
#include "services/initiator/batch/source.h"
#include "tests/fakes/cli/client_fixture.h"

namespace muster::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kJob[] = R"(name: shop
input: {format: csv, columns: {customer: customer, price: price}}
item: {transactions: 3}
handler: {linked: shop}
groups:
  - {name: by_customer, keys: [customer], measures: {revenue: decimal(2)}}
)";
constexpr char kHeader[] = "customer,price,note\r\n";
// Lines 2 to 10, of which one is empty and one record has two lines: items of lines 2, 3, 5 and of
// 6, 8, 9, and of 10.
constexpr char kRecords[] =
    "ann,1.00,\r\n"
    "bob,x,\"says \"\"hi\"\"\"\r\n"
    "\r\n"
    "cid,2.00,\r\n"
    "dan,y,\"two\nlines\"\r\n"
    "eve,3.00,\r\n"
    "fay,4.00,\r\n"
    "gus,z,\xff";

// Batch 7: a rejection in each item that is counted, and the second item given up.
class FailuresCommandTest : public ClientTest {
 protected:
  static constexpr uint64_t kBatch = 7;

  FailuresCommandTest() {
    EXPECT_EQ(Begin(kBatch, absl::StrCat(kHeader, kRecords)), 3u);
    Count(0, {{3, "price: not a number"}}, 3);
    GiveUp(kBatch, 1);
    Count(2, {{10, "price: not a number, \"z\""}}, 1);
  }

  // How many items a batch of the content has.
  size_t Begin(uint64_t number, std::string content) {
    const job::JobDefinition job = job::ParseJob(kJob, "shop.yaml").value();
    ledger::Batch batch;
    batch.number = number;
    batch.request_id = absl::StrCat("month ", number);
    batch.job = job.name;
    batch.job_definition = kJob;
    batch.content = std::move(content);
    batch.created = clock_.Now();
    const auto items = initiator::batch::SplitInline(job, batch.content);
    EXPECT_TRUE(ledger_->Create(batch, items).ok());
    EXPECT_TRUE(
        report_
            ->RegisterBatch(
                {number, "shop", "r1", {{"by_customer", {"customer"}, {{"revenue", false, 2}}}}})
            .ok());
    return items.size();
  }

  void Count(uint64_t index, std::vector<report::Rejection> rejections, int64_t transactions,
             uint64_t batch = kBatch) {
    report::CountedItem item;
    item.batch = batch;
    item.index = index;
    item.transactions = transactions;
    item.rejected = static_cast<int64_t>(rejections.size());
    item.aggregated = transactions - item.rejected;
    item.rejections = std::move(rejections);
    EXPECT_TRUE(report_->Commit({"shop-out-0", 1, {item}}).ok());
  }

  void GiveUp(uint64_t batch, uint64_t index) {
    report::CountedItem dead;
    dead.batch = batch;
    dead.index = index;
    dead.outcome = report::ItemOutcome::kDeadLettered;
    dead.transactions = 3;
    dead.cause = "killed by signal 6";
    EXPECT_TRUE(report_->Commit({"shop-out-0", 1, {dead}}).ok());
  }

  // The lines of each page that a reader of the batch gives, 1,000 at most in each.
  std::vector<std::vector<int64_t>> PagesOf(uint64_t batch, FailureKind kind) {
    CommonOptions options;
    options.server.address = server();
    Environment environment;
    environment.clock = &clock_;
    const auto admin = OpenBatchAdmin(options, environment).value();
    FailureReader reader(admin.get(), batch, kind, {});
    std::vector<std::vector<int64_t>> pages;
    while (true) {
      const auto page = reader.Next(kMaxFailurePage);
      EXPECT_TRUE(page.ok()) << page.status();
      if (!page.ok() || page->empty()) return pages;
      std::vector<int64_t>& lines = pages.emplace_back();
      for (const FailedTransaction& failure : *page) {
        EXPECT_EQ(failure.record->size(), kLargeRecordBytes) << failure.line;
        lines.push_back(failure.line);
      }
    }
  }

  // Of which an answer of 3 MiB has three.
  static constexpr size_t kLargeRecordBytes = 900 << 10;

  static std::string LargeContent(int records) {
    std::string content = kHeader;
    for (int i = 0; i < records; ++i) {
      absl::StrAppend(&content, "ann,x,", std::string(kLargeRecordBytes - 6, 'y'), "\r\n");
    }
    return content;
  }
};

TEST_F(FailuresCommandTest, HoldsNoMoreRecordsAtATimeThanAnAnswerHas) {
  ASSERT_EQ(Begin(8, LargeContent(8)), 8u) << "an item of each";
  for (const int64_t line : {3, 4, 5, 6, 7, 9}) {
    Count(static_cast<uint64_t>(line - 2), {{line, "no"}}, 1, 8);
  }
  EXPECT_THAT(PagesOf(8, FailureKind::kRejected),
              ElementsAre(ElementsAre(3, 4, 5), ElementsAre(6, 7, 9)));
  EXPECT_THAT(RunBoth({"batch", "rejections", "8", "-o", "csv", "--limit", "4"}).err,
              HasSubstr("--after 4:6\n"));
}

TEST_F(FailuresCommandTest, HoldsNoMoreThanOneItemThatWasGivenUp) {
  ASSERT_EQ(Begin(8, LargeContent(2)), 2u);
  GiveUp(8, 0);
  GiveUp(8, 1);
  EXPECT_THAT(PagesOf(8, FailureKind::kDeadLettered), ElementsAre(ElementsAre(2), ElementsAre(3)));
}

TEST_F(FailuresCommandTest, TakesRejectionsAlongWithTheirRecords) {
  EXPECT_EQ(RunBoth({"batch", "rejections", "7", "-o", "csv"}).out,
            "item,line,reason,record\n"
            "0,3,price: not a number,\"bob,x,\"\"says \"\"\"\"hi\"\"\"\"\"\"\"\n"
            "2,10,\"price: not a number, \"\"z\"\"\",\"gus,z,\xff\"\n");
  EXPECT_EQ(RunBoth({"batch", "rejections", "7", "-o", "json"}).out,
            "[{\"item\":0,\"line\":3,\"reason\":\"price: not a number\","
            "\"record\":\"bob,x,\\\"says \\\"\\\"hi\\\"\\\"\\\"\"},\n"
            "{\"item\":2,\"line\":10,\"reason\":\"price: not a number, \\\"z\\\"\","
            "\"record_base64\":\"Z3VzLHos/w==\"}]\n");
  EXPECT_THAT(RunBoth({"batch", "rejections", "7"}).out,
              HasSubstr("   0     3  price: not a number       bob,x,\"says \"\"hi\"\"\"\n"));
}

TEST_F(FailuresCommandTest, GoesOnWhereTheListBeforeHasEnded) {
  const Done first = RunBoth({"batch", "rejections", "7", "-o", "csv", "--limit", "1"});
  EXPECT_THAT(first.out, Not(HasSubstr("gus")));
  EXPECT_EQ(first.err, "muster: there are more: the same command with --after 0:3\n");
  const Done next =
      RunBoth({"batch", "rejections", "7", "-o", "csv", "--limit", "1", "--after", "0:3"});
  EXPECT_THAT(next.out, AllOf(HasSubstr("\n2,10,"), Not(HasSubstr("bob"))));
  EXPECT_EQ(next.err, "") << "these are all";
  EXPECT_EQ(RunBoth({"batch", "rejections", "7", "-o", "json", "--after", "2:10"}).out, "[]\n");
}

TEST_F(FailuresCommandTest, TakesEveryTransactionOfAnItemThatWasGivenUp) {
  EXPECT_EQ(RunBoth({"batch", "dead-letters", "7", "-o", "csv"}).out,
            "item,line,reason,record\n"
            "1,6,killed by signal 6,\"dan,y,\"\"two\nlines\"\"\"\n"
            "1,8,killed by signal 6,\"eve,3.00,\"\n"
            "1,9,killed by signal 6,\"fay,4.00,\"\n");
  const Done some = RunBoth({"batch", "dead-letters", "7", "-o", "csv", "--limit", "2"});
  EXPECT_THAT(some.out, EndsWith("1,8,killed by signal 6,\"eve,3.00,\"\n"));
  EXPECT_THAT(some.err, HasSubstr("--after 1:8\n"));
  EXPECT_EQ(RunBoth({"batch", "dead-letters", "7", "-o", "csv", "--after", "1:8"}).out,
            "item,line,reason,record\n1,9,killed by signal 6,\"fay,4.00,\"\n");
}

TEST_F(FailuresCommandTest, MakesAnInputOfWhatWasRejected) {
  EXPECT_EQ(RunBoth({"batch", "rejections", "7", "--as-input"}).out,
            absl::StrCat(kHeader, "bob,x,\"says \"\"hi\"\"\"\ngus,z,\xff\n"));
}

// An LF alone behind it would make it a part of the line end, and the record a sound one.
TEST_F(FailuresCommandTest, LeavesARecordOfAnInputTheCrAtItsEnd) {
  EXPECT_EQ(Begin(8, absl::StrCat(kHeader, "hal,5.00,\r\r\n")), 1u);
  Count(0, {{2, "a CR that no LF follows"}}, 1, 8);
  EXPECT_EQ(RunBoth({"batch", "rejections", "8", "--as-input"}).out,
            absl::StrCat(kHeader, "hal,5.00,\r\r\n"));
}

// In the batch, the quote of line 3 shows that the one of line 2 is not closed. Without line 3,
// what is rejected behind it was a part of it.
TEST_F(FailuresCommandTest, LeavesAQuoteOutOfAnInputThatWouldTakeTheNextRecordWithIt) {
  EXPECT_EQ(Begin(8, absl::StrCat(kHeader, "\"open,x,\r\nm,1.00,\"ok\"\r\nhal\",x,\r\n")), 1u);
  Count(0, {{2, "field 1 opens a quote that is never closed"}, {4, "price: not a number"}}, 3, 8);
  const Done input = RunBoth({"batch", "rejections", "8", "--as-input"});
  EXPECT_EQ(input.out, absl::StrCat(kHeader, "hal\",x,\n"));
  EXPECT_THAT(input.err, HasSubstr("left out 1 record, "));
  EXPECT_EQ(RunBoth({"batch", "rejections", "8", "-o", "csv"}).err, "");
}

TEST_F(FailuresCommandTest, NamesLinesAndReasonsAlsoWhenTheContentIsDeleted) {
  ASSERT_TRUE(ledger_->Seal(kBatch, sizeof(kHeader) + sizeof(kRecords) - 2).ok());
  ASSERT_TRUE(ledger_->MarkComplete(kBatch, clock_.Now()).ok());
  ASSERT_TRUE(ledger_->DropContent(kBatch).ok());
  const Done rejected = RunBoth({"batch", "rejections", "7", "-o", "csv"});
  EXPECT_THAT(rejected.out, HasSubstr("\n0,3,price: not a number,\n"));
  EXPECT_EQ(rejected.err,
            "muster: the records are left out: the content of batch 7 is deleted, as its retention "
            "says\n");
  EXPECT_EQ(RunBoth({"batch", "dead-letters", "7", "-o", "json"}).out,
            "[{\"item\":1,\"line\":0,\"reason\":\"killed by signal 6\",\"record\":null}]\n");
  const Done input = RunBoth({"batch", "rejections", "7", "--as-input"});
  EXPECT_EQ(input.code, kError);
  EXPECT_EQ(input.out, "") << "an input without records is none";
}

TEST_F(FailuresCommandTest, SaysWhatIsNotThere) {
  EXPECT_THAT(RunBoth({"batch", "rejections", "8"}).err, HasSubstr("`muster batch list"));
  EXPECT_EQ(RunBoth({"batch", "dead-letters", "8"}).code, kError);
  EXPECT_EQ(RunOnServer({"batch", "rejections", "7", "--after", "3"}).code, kUsage);
}

}  // namespace
}  // namespace muster::cli
