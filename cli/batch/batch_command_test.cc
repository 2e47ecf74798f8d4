// SPDX-License-Identifier: Apache-2.0

// muster batch and muster report, here and on a mesh.
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/output/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/cli/client_fixture.h"

namespace muster::cli {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Batch 7 of job "shop", with a row in one group, none in the other, and a rejection.
class BatchCommandTest : public ClientTest {
 protected:
  static constexpr uint64_t kBatch = 7;

  BatchCommandTest() {
    EXPECT_TRUE(report_
                    ->RegisterBatch({kBatch,
                                     "shop",
                                     "r1",
                                     {{"by_customer", {"customer"}, {{"revenue", false, 2}}},
                                      {"by_day", {"day"}, {{"units", true, 0}}}}})
                    .ok());
    report::CountedItem item;
    item.batch = kBatch;
    item.transactions = 2;
    item.aggregated = item.rejected = 1;
    item.groups = {{"by_customer", {{{"ann"}, {*base::Decimal::Parse("1.25")}}}}};
    item.rejections = {{3, "no price"}};
    EXPECT_TRUE(report_->Commit({"shop-out-0", 1, {item}}).ok());
    ledger::Batch batch;
    batch.number = kBatch;
    batch.job = "shop";
    batch.created = clock_.Now();
    EXPECT_TRUE(ledger_->Create(batch).ok());
    v1::BatchStatus& status = batches_.batches[kBatch];
    status.set_batch(kBatch);
    status.set_job("shop");
    status.set_request_id("monday");
    status.set_state(v1::BATCH_STATE_SEALED);
    *status.mutable_created() = base::ToProto(clock_.Now());
    status.mutable_progress()->set_read(2);
    status.set_transactions(2);
    status.set_aggregated(1);
    status.set_rejected(1);
    status.set_items(1);
    batches_.batches[12] = status;
    batches_.batches[12].set_batch(12);
    batches_.batches[12].set_state(v1::BATCH_STATE_COMPLETE);
    batches_.batches[12].set_complete(true);
  }
};

TEST_F(BatchCommandTest, ReportsTheSameHereAndThere) {
  for (const char* format : {"table", "json", "csv"}) {
    RunBoth({"report", "7", "--group", "by_customer", "-o", format});
    RunBoth({"report", "7", "--group", "by_day", "-o", format});
    RunBoth({"report", "7", "-o", format});
    RunBoth({"report", "8", "-o", format});
    RunBoth({"report", "7", "--group", "by_week", "-o", format});
  }
  EXPECT_EQ(RunOnServer({"report", "7", "--group", "by_customer", "-o", "csv"}).out,
            "customer,revenue\nann,1.25\n");
  EXPECT_EQ(RunOnServer({"report", "7", "-o", "json"}).out,
            "{\"batch\":7,\"groups\":[{\"name\":\"by_customer\",\"rows\":[{\"customer\":\"ann\","
            "\"revenue\":\"1.25\"}]},{\"name\":\"by_day\",\"rows\":[]}]}\n");
  EXPECT_EQ(RunOnServer({"report", "7", "-o", "csv"}).err,
            "muster: CSV holds one table: choose one with --group: by_customer, by_day\n");
  EXPECT_EQ(RunOnServer({"report", "7", "--group", "by_week"}).err,
            "muster: batch 7 has no group 'by_week'; it has by_customer, by_day\n");
}

TEST_F(BatchCommandTest, SaysThatWhatIsSubmittedIsDoneAlready) {
  const std::string input = dir_ / "in.csv";
  std::ofstream(input) << "customer,price\nann,1.25\n";
  const std::string said = "batch 12 is done already; --new submits this input once more\n";
  const Done waited = RunOnServer({"batch", "submit", "shop", "--input", input, "--watch"});
  EXPECT_EQ(waited.err, said + "1 transaction was rejected: muster batch rejections 12\n")
      << "without a bar";
  EXPECT_THAT(waited.out, StartsWith("batch 12: 2 transactions = 1 aggregated + 1 rejected"));
  EXPECT_EQ(waited.code, kPartial);
  const Done done = RunOnServer({"batch", "submit", "shop", "--input", input});
  EXPECT_EQ(done.code, kOk);
  EXPECT_EQ(done.err, said);
  EXPECT_EQ(done.out, "report:  muster report 12\nreceipt: muster batch receipt 12\n");
}

TEST_F(BatchCommandTest, SaysHowToWatchWhatIsSubmitted) {
  batches_.batches[12].set_state(v1::BATCH_STATE_SEALED);
  batches_.batches[12].set_complete(false);
  const std::string input = dir_ / "in.csv";
  std::ofstream(input) << "customer,price\nann,1.25\n";
  const Done done = RunOnServer({"batch", "submit", "shop", "--input", input});
  EXPECT_EQ(done.code, kOk);
  EXPECT_EQ(done.err, "");
  EXPECT_EQ(done.out, "batch 12 is submitted\nwatch it: muster batch watch 12\n");
}

TEST_F(BatchCommandTest, SaysThatAnotherProgramIsThere) {
  const std::string input = dir_ / "in.csv";
  std::ofstream(input) << "shop: customer,price\n";
  const auto no_such = [](const std::string& address, const char* program) {
    return absl::StrCat("muster: ", address, " does not offer what a ", program,
                        " does: it is another program, or another version\n");
  };
  const std::vector<std::vector<std::string>> commands = {
      {"batch", "list"},       {"batch", "submit", "shop", "--input", input},
      {"batch", "watch", "7"}, {"job", "apply", input},
      {"queue", "list"},       {"worker", "list"}};
  for (std::vector<std::string> command : commands) {
    command.insert(command.end(), {"--server", controller_address()});
    const Done done = Run(command);
    EXPECT_EQ(done.code, kError) << command[1];
    EXPECT_EQ(done.err, no_such(controller_address(), "muster-initiator")) << command[1];
  }
  EXPECT_EQ(RunOnServer({"report", "7", "--controller", server()}).err,
            no_such(server(), "muster-controller"));
}

TEST_F(BatchCommandTest, SaysWhatShowsTheNamesThatThereAre) {
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"report", "99"}, {"batch", "get", "99"}}) {
    EXPECT_THAT(
        RunOnServer(command).err,
        AllOf(HasSubstr("batch"), EndsWith("; `muster batch list` shows those there are\n")));
    std::vector<std::string> here = command;
    here.insert(here.end(), {"--data-dir", data_dir()});
    EXPECT_THAT(Run(here).err, EndsWith(absl::StrCat("; `muster batch list --data-dir '",
                                                     data_dir(), "'` shows those there are\n")));
  }
  const std::string input = dir_ / "in.csv";
  std::ofstream(input) << "customer,price\nann,1.25\n";
  batches_.refusals = {rpc::WithReason(absl::NotFoundError("no job 'retial'"),
                                       {"NO_SUCH_JOB", {{"job", "retial"}}})};
  const Done no_job = RunOnServer({"batch", "submit", "retial", "--input", input});
  EXPECT_EQ(no_job.err, "muster: no job 'retial'; `muster job list` shows those there are\n");
  const Done no_file = RunOnServer({"batch", "submit", "retial", "--input", input + "x"});
  EXPECT_THAT(no_file.err, Not(HasSubstr("list")));
}

TEST_F(BatchCommandTest, AsksTheControllerThatIsNamed) {
  mesh_.controllers.clear();
  const Done lost = RunOnServer({"report", "7"});
  EXPECT_EQ(lost.code, kUnreachable);
  EXPECT_THAT(lost.err, HasSubstr("has heard of no controller"));
  EXPECT_THAT(RunOnServer({"report", "7", "--controller", controller_address()}).out,
              HasSubstr("ann"));
}

TEST_F(BatchCommandTest, AsksAControllerThatStays) {
  v1::Instance leaving = mesh_.controllers[0];
  leaving.set_leaving(true);
  leaving.mutable_info()->set_address("localhost:1");
  v1::Instance silent;
  mesh_.controllers = {leaving, silent, mesh_.controllers[0]};
  EXPECT_THAT(RunOnServer({"report", "7"}).out, HasSubstr("ann"));
}

TEST_F(BatchCommandTest, SaysOfARowThatNoReceiptProvesIt) {
  const Done open = RunBoth({"report", "7", "--group", "by_customer", "-o", "csv"});
  EXPECT_EQ(open.out, "customer,revenue\nann,1.25\n");
  EXPECT_EQ(
      open.err,
      "muster: batch 7 is not complete: 2 transactions of it are accounted for so far; `muster "
      "batch get 7` says more\n");
  EXPECT_EQ(open.code, kError);
  const Done here = Run({"report", "7", "--group", "by_customer", "--data-dir", data_dir()});
  EXPECT_THAT(here.err, HasSubstr(absl::StrCat("`muster batch get 7 --data-dir '", data_dir(),
                                               "'` says more\n")))
      << "the command as it is to be typed";
  report::BatchFacts facts;
  facts.batch = kBatch;
  facts.job = "shop";
  facts.job_revision = "r1";
  facts.items = 1;
  facts.transactions = 2;
  ASSERT_TRUE(report_->Complete(facts).ok());
  const Done proved = RunBoth({"report", "7", "--group", "by_customer", "-o", "csv"});
  EXPECT_EQ(proved.err, "");
  EXPECT_EQ(proved.code, kOk);
}

TEST_F(BatchCommandTest, FailsForACompleteBatchThatTheReportDoesNotProve) {
  batches_.batches[12].set_rejected(0);  // the report has none of it
  batches_.batches[12].set_problem("it is complete in the ledger, and the report has less");
  const Done done = RunOnServer({"batch", "get", "12"});
  EXPECT_EQ(done.code, kDamaged);
  EXPECT_THAT(done.out, HasSubstr("problem: it is complete in the ledger"));
}

TEST_F(BatchCommandTest, ListsBatchesOfAServer) {
  const std::string begun = Rfc3339(clock_.Now());
  const Done table = RunOnServer({"batch", "list"});
  EXPECT_EQ(table.code, kOk) << table.err;
  EXPECT_EQ(
      table.out,
      absl::StrCat("BATCH  JOB   STATE     TRANSACTIONS  AGGREGATED  REJECTED  DEAD-LETTERED"
                   "  BEGUN                     INPUT\n",
                   "   12  shop  complete             2           1         1              0  ",
                   begun, "  -\n",
                   "    7  shop  sealed               2           1         1              0  ",
                   begun, "  -\n"));
}

TEST_F(BatchCommandTest, ShowsABatchOfAServerWithWhatItRejected) {
  const Done done = RunOnServer({"batch", "get", "7"});
  EXPECT_EQ(done.code, kOk) << done.err;
  EXPECT_THAT(done.out, AllOf(HasSubstr("batch: 7\njob: shop\nstate: sealed\n"),
                              HasSubstr("request_id: monday\n"), HasSubstr("items_counted: 1\n"),
                              HasSubstr("LINE  REJECTED BECAUSE\n   3  no price\n")));
  EXPECT_EQ(RunOnServer({"batch", "get", "8"}).code, kError);
}

TEST_F(BatchCommandTest, PrintsTheReceiptOfAServer) {
  batches_.receipts[12].set_text("muster-receipt 1\nbatch 12\n");
  batches_.receipts[12].set_checksum("5f1c");
  EXPECT_EQ(RunOnServer({"batch", "receipt", "12"}).out,
            "muster-receipt 1\nbatch 12\nchecksum 5f1c\n");
  EXPECT_EQ(RunOnServer({"batch", "receipt", "12", "-o", "json"}).out,
            "{\"muster-receipt\":\"1\",\"batch\":\"12\",\"checksum\":\"5f1c\"}\n");
  EXPECT_EQ(RunOnServer({"batch", "receipt", "7"}).code, kError);
  const Done verified = RunOnServer({"batch", "receipt", "12", "--verify"});
  EXPECT_EQ(verified.code, kError);
  EXPECT_THAT(verified.err, HasSubstr("can only be computed again from the ledger and the report"));
}

// Batch 8 has nothing in the report.
TEST_F(BatchCommandTest, SaysThatAnOpenBatchHasNoReceiptYet) {
  ledger::Batch batch;
  batch.number = 8;
  batch.job = "shop";
  batch.created = clock_.Now();
  ASSERT_TRUE(ledger_->Create(batch).ok());
  for (const std::string number : {"7", "8"}) {
    const Done done = Run({"batch", "receipt", number, "--data-dir", data_dir()});
    EXPECT_EQ(done.code, kError);
    EXPECT_THAT(done.err, HasSubstr(absl::StrCat("muster: batch ", number,
                                                 " is open: it has no receipt before it is "
                                                 "complete. If no process works on it, ")));
  }
  EXPECT_THAT(Run({"batch", "receipt", "9", "--data-dir", data_dir()}).err,
              HasSubstr("`muster batch list"));
}

// The batch has two items of two transactions each; one item is counted.
TEST_F(BatchCommandTest, MakesTheReceiptOfACancelledBatchWhereItsLedgerIs) {
  std::vector<ledger::ItemBoundary> items(2);
  items[0].transactions = items[1].transactions = 2;
  ASSERT_TRUE(ledger_->Append(kBatch, 0, items).ok());
  ASSERT_TRUE(ledger_->Cancel(kBatch, clock_.Now(), "a mistake").ok());
  const Done done = Run({"batch", "receipt", "7", "--data-dir", data_dir()});
  EXPECT_EQ(done.code, kOk) << done.err;
  EXPECT_THAT(done.out, AllOf(HasSubstr("\nstate cancelled\n"), HasSubstr("\ncounts so_far\n"),
                              HasSubstr("\naggregated 1\nrejected 1\ndead_lettered 0\nuncounted 2"),
                              HasSubstr("\nchecksum ")));
  EXPECT_THAT(done.err, HasSubstr("these are the counts so far"));
  EXPECT_THAT(
      Run({"batch", "receipt", "7", "-o", "json", "--data-dir", data_dir()}).out,
      AllOf(HasSubstr("\"state\":\"cancelled\""), HasSubstr("\"cancel_reason\":\"a mistake\"")));
  const Done verified = Run({"batch", "receipt", "7", "--verify", "--data-dir", data_dir()});
  EXPECT_EQ(verified.code, kError);
  EXPECT_THAT(verified.err, HasSubstr("no issued one exists to compare with them"));
}

}  // namespace
}  // namespace muster::cli
