// SPDX-License-Identifier: Apache-2.0

// muster batch retry.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/fakes/cli/client_fixture.h"

namespace muster::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class RetryCommandTest : public ClientTest {
 protected:
  // Batch `number` retries `transactions`.
  void Answer(uint64_t number, int64_t transactions, bool is_new = true, bool more = false) {
    v1::RetryRejectionsResponse response;
    v1::RetriedBatch* const retry = response.add_retries();
    retry->set_batch(number);
    retry->set_transactions(transactions);
    retry->set_is_new(is_new);
    response.set_more(more);
    batches_.retries.push_back(std::move(response));
  }

  // The batch is over when it is watched, with so many rejected of its three transactions.
  void EndWith(uint64_t number, int64_t rejected) {
    v1::BatchStatus status;
    status.set_batch(number);
    status.set_job("shop");
    status.set_state(v1::BATCH_STATE_COMPLETE);
    status.set_complete(true);
    status.set_transactions(3);
    status.set_aggregated(3 - rejected);
    status.set_rejected(rejected);
    batches_.batches[number] = status;
    batches_.news = {status};
  }
};

TEST_F(RetryCommandTest, RetriesTheNamedLines) {
  Answer(9, 2);
  const Done done = RunOnServer({"batch", "retry", "7", "--line", "30", "--line", "41"});
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_EQ(done.out,
            "batch 9 retries 2 transactions of batch 7\nwatch it: muster batch watch 9\n");
  ASSERT_THAT(batches_.retried(), SizeIs(1));
  EXPECT_EQ(batches_.retried()[0].batch(), 7);
  EXPECT_THAT(batches_.retried()[0].lines(), ElementsAre(30, 41));
  EXPECT_FALSE(batches_.retried()[0].all());
}

// A frozen server had ten minutes to answer, whatever --wait-timeout said.
TEST_F(RetryCommandTest, AsksNoLongerThanItMayWait) {
  Answer(9, 2);
  EndWith(9, 0);
  const Done done =
      RunOnServer({"batch", "retry", "7", "--all", "--wait", "--wait-timeout", "30s"});
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_GT(batches_.milliseconds_left, 0);
  EXPECT_LE(batches_.milliseconds_left, 31'000) << "gRPC rounds time-outs up";
}

TEST_F(RetryCommandTest, AsksForAllUntilNothingIsLeft) {
  Answer(9, 50'000, true, true);
  Answer(10, 1);
  const Done done = RunOnServer({"batch", "retry", "7", "--all"});
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.out, AllOf(HasSubstr("batch 9 retries 50,000 transactions of batch 7\n"),
                              HasSubstr("batch 10 retries 1 transaction of batch 7\n")));
  ASSERT_THAT(batches_.retried(), SizeIs(2));
  EXPECT_TRUE(batches_.retried()[1].all());
  EXPECT_THAT(batches_.retried()[1].lines(), SizeIs(0));
}

TEST_F(RetryCommandTest, NamesAThousandLinesWithEachCall) {
  std::vector<std::string> command = {"batch", "retry", "7"};
  for (int line = 1; line <= 1001; ++line) {
    command.push_back("--line");
    command.push_back(absl::StrCat(line));
  }
  Answer(9, 1000);
  Answer(10, 1);
  const Done done = RunOnServer(command);
  EXPECT_EQ(done.code, 0) << done.err;
  ASSERT_THAT(batches_.retried(), SizeIs(2));
  EXPECT_THAT(batches_.retried()[0].lines(), SizeIs(1000));
  EXPECT_THAT(batches_.retried()[1].lines(), ElementsAre(1001));
}

TEST_F(RetryCommandTest, RetriesTheNamedItems) {
  Answer(9, 1);
  Answer(10, 20);
  const Done done =
      RunOnServer({"batch", "retry", "7", "--item", "0", "--item", "12", "--line", "30"});
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("batch 10 retries 20 transactions of batch 7\n"));
  ASSERT_THAT(batches_.retried(), SizeIs(2)) << "a call has lines or items";
  EXPECT_THAT(batches_.retried()[0].lines(), ElementsAre(30));
  EXPECT_THAT(batches_.retried()[1].items(), ElementsAre(0, 12));
  EXPECT_THAT(batches_.retried()[1].lines(), SizeIs(0));
}

TEST_F(RetryCommandTest, LeavesDeadItemsOutOnDemand) {
  Answer(9, 1);
  Answer(10, 20);
  RunOnServer({"batch", "retry", "7", "--all", "--rejections-only"});
  RunOnServer({"batch", "retry", "7", "--all"});
  ASSERT_THAT(batches_.retried(), SizeIs(2));
  EXPECT_TRUE(batches_.retried()[0].rejections_only());
  EXPECT_FALSE(batches_.retried()[1].rejections_only());
}

TEST_F(RetryCommandTest, SaysWhichBatchHasALineAlready) {
  Answer(9, 1, false);
  EXPECT_THAT(RunOnServer({"batch", "retry", "7", "--line", "30"}).out,
              HasSubstr("batch 9 retries 1 transaction of batch 7, submitted before\n"));
  Answer(9, 1, false);
  const Done done = RunOnServer({"batch", "retry", "7", "--line", "30", "-o", "json"});
  EXPECT_EQ(nlohmann::json::parse(done.out), nlohmann::json::parse(R"({"batch": 7, "retries": [
                {"batch": 9, "transactions": 1, "is_new": false}]})"));
}

TEST_F(RetryCommandTest, WaitsForTheNewBatchAndEndsWithItsCode) {
  Answer(9, 3);
  EndWith(9, 0);
  const Done good = RunOnServer({"batch", "retry", "7", "--all", "--wait"});
  EXPECT_EQ(good.code, 0) << good.err;
  EXPECT_THAT(good.out, AllOf(HasSubstr("batch 9: 3 transactions = 3 aggregated"),
                              HasSubstr("report:  muster report 9\n")));
  Answer(9, 3);
  EndWith(9, 1);
  const Done lossy = RunOnServer({"batch", "retry", "7", "--all", "--wait", "-o", "json"});
  EXPECT_EQ(lossy.code, RunOnServer({"batch", "watch", "9"}).code) << "as of any batch";
  EXPECT_NE(lossy.code, 0);
  const auto json = nlohmann::json::parse(lossy.out);
  EXPECT_EQ(json["retries"][0]["outcome"]["rejected"], 1);
}

// The batches that were there before it are watched, and are no reason to retry once more.
TEST_F(RetryCommandTest, SaysWhatWasRetriedBeforeAFailure) {
  for (const char* format : {"table", "json", "yaml"}) {
    Answer(9, 50'000, true, true);
    batches_.retries.push_back(absl::ResourceExhaustedError("too much waits already"));
    const Done done = RunOnServer({"batch", "retry", "7", "--all", "--wait", "-o", format});
    EXPECT_NE(done.code, 0);
    EXPECT_THAT(done.err, HasSubstr("too much waits already"));
    if (format == absl::string_view("json")) {
      EXPECT_EQ(nlohmann::json::parse(done.out), nlohmann::json::parse(R"({"batch": 7, "retries": [
                    {"batch": 9, "transactions": 50000, "is_new": true}]})"));
    } else {
      EXPECT_THAT(done.out, HasSubstr(format == absl::string_view("table")
                                          ? "batch 9 retries 50,000 transactions of batch 7\n"
                                          : "transactions: 50000"));
    }
  }
}

// A script that gave -q to all that waits had usage for an answer, and nothing was retried.
TEST_F(RetryCommandTest, IsQuietOnDemand) {
  Answer(9, 3);
  EndWith(9, 0);
  const Done done = RunOnServer({"batch", "retry", "7", "--all", "--wait", "-q"});
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_EQ(done.err, "");
  EXPECT_THAT(done.out, HasSubstr("batch 9: 3 transactions = 3 aggregated"));
}

TEST_F(RetryCommandTest, SaysWhatItNeeds) {
  const Done neither = RunOnServer({"batch", "retry", "7"});
  EXPECT_EQ(neither.code, 1);
  EXPECT_THAT(neither.err, HasSubstr("give --line, --item, or --all"));
  EXPECT_NE(RunOnServer({"batch", "retry", "7", "--all", "--line", "3"}).code, 0);
  EXPECT_NE(RunOnServer({"batch", "retry", "7", "--all", "--item", "3"}).code, 0);
  EXPECT_NE(RunOnServer({"batch", "retry", "7", "--line", "0"}).code, 0);
  EXPECT_NE(RunOnServer({"batch", "retry", "7", "--item", "3", "--rejections-only"}).code, 0);
  EXPECT_THAT(batches_.retried(), SizeIs(0));
  EXPECT_THAT(Run({"batch", "retry", "7", "--all"}).err, HasSubstr("retried on a server"));
}

TEST_F(RetryCommandTest, SaysWhatTheServerHasAgainstIt) {
  batches_.retries.push_back(absl::FailedPreconditionError("nothing is left to retry of batch 7"));
  const Done done = RunOnServer({"batch", "retry", "7", "--all"});
  EXPECT_NE(done.code, 0);
  EXPECT_THAT(done.err, HasSubstr("nothing is left to retry of batch 7"));
}

}  // namespace
}  // namespace muster::cli
