// SPDX-License-Identifier: Apache-2.0

// muster batch list, here and on a server.
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/output/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/cli/client_fixture.h"

namespace muster::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

// Batches 1 to 4, begun an hour apart, the last one now.
class ListCommandTest : public ClientTest {
 protected:
  ListCommandTest() {
    for (uint64_t number = 1; number <= 4; ++number) {
      ledger::Batch batch;
      batch.number = number;
      batch.request_id = absl::StrCat("r", number);
      batch.job = number == 2 ? "bakery" : "shop";
      batch.created = clock_.Now() - absl::Hours(4 - number);
      batch.sla = absl::Minutes(150);  // so batch 1 is late
      batch.labels = {{"team", number == 3 ? "till" : "billing"}};
      EXPECT_TRUE(ledger_->Create(batch).ok());
      v1::BatchStatus& status = batches_.batches[number];
      status.set_batch(number);
      status.set_job(batch.job);
      status.set_state(v1::BATCH_STATE_OPEN);
      *status.mutable_created() = base::ToProto(batch.created);
    }
    EXPECT_TRUE(ledger_->Seal(3, 0).ok());
    EXPECT_TRUE(ledger_->MarkComplete(3, clock_.Now()).ok());
  }

  // The numbers in a table's first column.
  std::vector<std::string> ListHere(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"batch", "list", "--data-dir", data_dir()});
    const Done done = Run(arguments);
    EXPECT_EQ(done.code, kOk) << done.err;
    said_ = done.err;
    std::vector<std::string> numbers;
    for (const absl::string_view line : absl::StrSplit(done.out, '\n', absl::SkipEmpty())) {
      const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
      if (words.front() != "BATCH") numbers.push_back(words.front());
    }
    return numbers;
  }

  std::string said_;
};

TEST_F(ListCommandTest, ListsTheNewestFirstPageByPage) {
  EXPECT_THAT(ListHere({"--limit", "3"}), ElementsAre("4", "3", "2"));
  EXPECT_EQ(said_, "muster: there are older batches: the same command with --after 2\n");
  EXPECT_THAT(ListHere({"--limit", "3", "--after", "2"}), ElementsAre("1"));
  EXPECT_EQ(said_, "");
}

TEST_F(ListCommandTest, FiltersTheBatchesOfADataDirectory) {
  EXPECT_THAT(ListHere({"--job", "bakery"}), ElementsAre("2"));
  EXPECT_THAT(ListHere({"--state", "complete"}), ElementsAre("3"));
  EXPECT_THAT(ListHere({"--state", "complete", "--state", "open"}),
              ElementsAre("4", "3", "2", "1"));
  EXPECT_THAT(ListHere({"--since", "90m"}), ElementsAre("4", "3"));
  EXPECT_THAT(ListHere({"--since", Rfc3339(clock_.Now())}), ElementsAre("4"));
  EXPECT_THAT(ListHere({"--late"}), ElementsAre("1"));
  EXPECT_THAT(ListHere({"--label", "team=billing", "--job", "shop"}), ElementsAre("4", "1"));
}

TEST_F(ListCommandTest, HandsTheFilterToTheServer) {
  const Done done = RunOnServer({"batch", "list", "--job", "shop", "--state", "open", "--state",
                                 "cancelled", "--since", "2h", "--late", "--label", "team=a=b",
                                 "--label", "run=7", "--after", "4", "--limit", "1"});
  EXPECT_EQ(done.code, kOk) << done.err;
  const v1::ListBatchesRequest asked = batches_.listed();
  EXPECT_EQ(asked.job(), "shop");
  EXPECT_THAT(asked.states(), ElementsAre(v1::BATCH_STATE_OPEN, v1::BATCH_STATE_CANCELLED));
  EXPECT_EQ(base::FromProto(asked.since()), clock_.Now() - absl::Hours(2));
  EXPECT_TRUE(asked.late());
  EXPECT_FALSE(asked.calls());
  EXPECT_THAT(asked.labels(), UnorderedElementsAre(Pair("team", "a=b"), Pair("run", "7")));
  EXPECT_EQ(asked.page_token(), "4");
  EXPECT_EQ(asked.page_size(), 1);
}

TEST_F(ListCommandTest, ShowsTheBatchesOfCallsToOneWhoAsksForThem) {
  EXPECT_EQ(RunOnServer({"batch", "list", "--calls"}).code, kOk);
  EXPECT_TRUE(batches_.listed().calls());
  ledger::Batch made;
  made.number = 5;
  made.request_id = "call:1";
  made.job = "shop";
  made.created = clock_.Now();
  made.labels = {{"muster/call", "gathered"}};
  ASSERT_TRUE(ledger_->Create(made, {}).ok());
  EXPECT_THAT(ListHere({"--job", "shop", "--limit", "1"}), ElementsAre("4"));
  EXPECT_THAT(ListHere({"--job", "shop", "--limit", "1", "--calls"}), ElementsAre("5"));
  EXPECT_THAT(ListHere({"--label", "muster/call=gathered"}), ElementsAre("5"));
}

TEST_F(ListCommandTest, SaysWhatIsNoFilter) {
  EXPECT_EQ(RunOnServer({"batch", "list", "--state", "done"}).code, kUsage);
  EXPECT_THAT(RunOnServer({"batch", "list", "--state", "done"}).err,
              HasSubstr("--state: 'done' is none of open, sealed, complete, cancelled\n"));
  EXPECT_EQ(RunOnServer({"batch", "list", "--state", "2"}).code, kUsage);
  EXPECT_EQ(RunOnServer({"batch", "list", "--watch", "--after", "3"}).code, kUsage);
  EXPECT_THAT(RunOnServer({"batch", "list", "--label", "team"}).err, HasSubstr("NAME=VALUE"));
  const Done since = RunOnServer({"batch", "list", "--since", "tomorrow"});
  EXPECT_EQ(since.code, kError);
  EXPECT_THAT(since.err, StartsWith("muster: 'tomorrow' is no time: 2h is two hours ago"));
}

TEST_F(ListCommandTest, ShowsLabelsAndWhatIsNotKnown) {
  v1::BatchStatus& status = batches_.batches[4];
  status.set_state(v1::BATCH_STATE_COMPLETE);
  status.mutable_progress()->set_read(2);
  status.set_counts_problem("no controller answers");
  (*status.mutable_labels())["team"] = "billing";
  const Done table = RunOnServer({"batch", "list", "--limit", "1"});
  EXPECT_EQ(table.code, kOk) << "a complete batch can be shown without a controller";
  EXPECT_THAT(table.out,
              HasSubstr("complete             2           -         -              -  "));
  EXPECT_THAT(table.err, StartsWith("muster: what is counted is not known of each batch ('-'): no "
                                    "controller answers\n"));
  const Done json = RunOnServer({"batch", "list", "--limit", "1", "-o", "json"});
  EXPECT_THAT(json.out, AllOf(HasSubstr("\"labels\":{\"team\":\"billing\"}"),
                              HasSubstr("\"aggregated\":null"),
                              HasSubstr("\"counts_problem\":\"no controller answers\"")));
}

// The server ends, and with it the watch.
TEST_F(ListCommandTest, AWatchShowsBatchesThatAreNewOrHaveChanged) {
  Done done;
  std::thread watcher([&] {
    done = RunOnServer({"batch", "list", "--watch", "--limit", "4", "-o", "json"});
  });
  clock_.AwaitSleepers(1);
  batches_.batches[2].set_state(v1::BATCH_STATE_SEALED);
  batches_.batches[5] = batches_.batches[4];
  batches_.batches[5].set_batch(5);
  clock_.Advance(absl::Seconds(2));
  clock_.AwaitSleepers(1);
  initiator_.reset();
  clock_.Advance(absl::Seconds(2));
  watcher.join();
  EXPECT_EQ(done.code, kUnreachable);
  const std::vector<std::string> lines = absl::StrSplit(done.out, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 6u) << done.out;
  EXPECT_THAT(lines[0], StartsWith("{\"batch\":4,"));
  EXPECT_THAT(lines[4], StartsWith("{\"batch\":5,"));
  EXPECT_THAT(lines[5], AllOf(StartsWith("{\"batch\":2,"), HasSubstr("\"state\":\"sealed\"")));
}

TEST_F(ListCommandTest, ASubmitSendsItsLabels) {
  const std::string input = dir_ / "in.csv";
  std::ofstream(input) << "customer,price\nann,1.25\n";
  EXPECT_EQ(RunOnServer({"batch", "submit", "shop", "--input", input, "--label", "team=billing",
                         "--label", "run=7"})
                .code,
            kOk);
  EXPECT_THAT(batches_.submitted().labels(),
              UnorderedElementsAre(Pair("team", "billing"), Pair("run", "7")));
  const Done refused =
      RunOnServer({"batch", "submit", "shop", "--input", input, "--label", "-team=x"});
  EXPECT_EQ(refused.code, kUsage);
  EXPECT_THAT(refused.err, HasSubstr("'-team' is no label"));
}

}  // namespace
}  // namespace muster::cli
