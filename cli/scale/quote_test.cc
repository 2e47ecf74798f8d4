// SPDX-License-Identifier: Apache-2.0
#include <fstream>
#include <string>
#include <vector>

#include "cli/output/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/fakes/cli/client_fixture.h"
#include "tests/fakes/job/job_text.h"

namespace muster::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// The fixture has job "name", with CSV input that has a column "amount". The fake job service takes
// the text before the first colon as the job's name.
class QuoteCommandTest : public ClientTest {
 protected:
  QuoteCommandTest() {
    const std::string job = Write("job.yaml", job::JobText("name"));
    EXPECT_EQ(RunOnServer({"job", "apply", job}).code, kOk);
    v1::QuoteResponse quote;
    quote.set_items(3);
    quote.set_feasible(false);
    *quote.mutable_finish() = base::ToProto(clock_.Now() + absl::Seconds(390));
    *quote.mutable_deadline() = base::ToProto(clock_.Now() + absl::Seconds(300));
    *quote.mutable_late_by() = base::ToProto(absl::Seconds(90));
    quote.set_replicas_now(1);
    quote.set_replicas(2);
    quote.set_needs(3);
    quote.set_max(2);
    quote.set_replica_seconds(7200);
    *quote.mutable_shortest_sla() = base::ToProto(absl::Seconds(390));
    quote.set_explanation("Done in 6 min 30 s, 90 s late.");
    batches_.quote = quote;
  }

  std::string Write(const std::string& name, const std::string& text) {
    std::ofstream(dir_ / name) << text;
    return dir_ / name;
  }

  std::string In(int seconds) { return Rfc3339(clock_.Now() + absl::Seconds(seconds)); }
};

TEST_F(QuoteCommandTest, SaysWhenABatchWouldBeDoneAndWhatItWouldCost) {
  const Done done = RunOnServer(
      {"batch", "quote", "shop", "--transactions", "1500", "--sla", "5m", "--price", "0.4"});
  EXPECT_EQ(done.code, kDeadlineMissed) << done.err;
  EXPECT_EQ(done.out,
            absl::StrCat("job: shop\ntransactions: 1,500\nitems: 3\n"
                         "feasible: no: 90 s late; it needs 3 replicas\nfinish: ",
                         In(390), " (in 6 min 30 s)\ndeadline: ", In(300),
                         " (in 5 min)\nreplicas: 1 now, 2 for this, at most 2\n"
                         "replica time: 2 h\ncost: $0.80\nshortest promise: 6 min 30 s\n\n"
                         "Done in 6 min 30 s, 90 s late.\n"));
  const v1::QuoteRequest asked = batches_.quoted();
  EXPECT_EQ(asked.job(), "shop");
  EXPECT_EQ(asked.transactions(), 1500);
  EXPECT_EQ(asked.sla().seconds(), 300);
}

TEST_F(QuoteCommandTest, AnswersPrograms) {
  const Done done = RunOnServer({"batch", "quote", "shop", "--transactions", "1500", "-o", "json"});
  EXPECT_EQ(done.code, kDeadlineMissed);
  const auto json = nlohmann::json::parse(done.out);
  EXPECT_EQ(json["job"], "shop");
  EXPECT_EQ(json["transactions"], 1500);
  EXPECT_EQ(json["items"], 3);
  EXPECT_EQ(json["feasible"], false);
  EXPECT_EQ(json["finish"], In(390));
  EXPECT_EQ(json["late_by_seconds"], 90);
  EXPECT_EQ(json["needs"], 3);
  EXPECT_EQ(json["replica_seconds"], 7200);
  EXPECT_EQ(json["shortest_sla_seconds"], 390);
  EXPECT_TRUE(json["cost"].is_null());
  EXPECT_FALSE(batches_.quoted().has_sla());
}

TEST_F(QuoteCommandTest, SaysNothingOfReplicasWhereTheLastBatchesWereMeasured) {
  batches_.quote->set_measured_batches(7);
  batches_.quote->set_explanation("No scaling agent makes this forecast.");
  const Done done =
      RunOnServer({"batch", "quote", "shop", "--transactions", "1", "--price", "0.4"});
  EXPECT_EQ(done.code, kDeadlineMissed);
  EXPECT_THAT(done.out, AllOf(HasSubstr("feasible: no: 90 s late\nfinish: "),
                              HasSubstr("\n\nNo scaling agent"), Not(HasSubstr("replica")),
                              Not(HasSubstr("cost"))));
  const Done json = RunOnServer({"batch", "quote", "shop", "--transactions", "1", "-o", "json"});
  EXPECT_EQ(nlohmann::json::parse(json.out)["measured_batches"], 7);
}

TEST_F(QuoteCommandTest, EndsWithZeroWhereItIsFeasible) {
  batches_.quote->set_feasible(true);
  batches_.quote->mutable_late_by()->Clear();
  const Done done = RunOnServer({"batch", "quote", "shop", "--transactions", "1"});
  EXPECT_EQ(done.code, kOk);
  EXPECT_THAT(done.out, HasSubstr("feasible: yes\n"));
}

TEST_F(QuoteCommandTest, SaysNeverWhereItIsNeverDone) {
  batches_.quote->clear_finish();
  batches_.quote->clear_late_by();
  batches_.quote->clear_shortest_sla();
  batches_.quote->set_needs(0);
  const Done done = RunOnServer({"batch", "quote", "shop", "--transactions", "1"});
  EXPECT_EQ(done.code, kDeadlineMissed);
  EXPECT_THAT(done.out, HasSubstr("feasible: no: never done; no number of replicas would do it\n"
                                  "finish: never\n"));
  const Done json = RunOnServer({"batch", "quote", "shop", "--transactions", "1", "-o", "json"});
  EXPECT_TRUE(nlohmann::json::parse(json.out)["finish"].is_null());
}

// Counts as submit's reader does: a newline in quotes does not end a transaction, and an empty line
// is not a transaction.
TEST_F(QuoteCommandTest, CountsTheTransactionsOfAFile) {
  const std::string input = Write("in.csv", "amount,note\n1,\"a\nb\"\n\n2,c\n3,d\n");
  EXPECT_EQ(RunOnServer({"batch", "quote", "name", "--input", input}).code, kDeadlineMissed);
  EXPECT_EQ(batches_.quoted().transactions(), 3);
}

TEST_F(QuoteCommandTest, CountsMoreThanOneItem) {
  std::string text = "amount\n";
  for (int i = 0; i < 1234; ++i) text += "1\n";
  const std::string input = Write("in.csv", text);
  EXPECT_EQ(RunOnServer({"batch", "quote", "name", "--input", input}).code, kDeadlineMissed);
  EXPECT_EQ(batches_.quoted().transactions(), 1234);
}

TEST_F(QuoteCommandTest, FailsAsSubmitWould) {
  const Done file = RunOnServer({"batch", "quote", "name", "--input", dir_ / "none.csv"});
  EXPECT_EQ(file.code, kError);
  EXPECT_THAT(file.err, HasSubstr("does not exist"));
  const std::string input = Write("in.csv", "price\n1\n");
  EXPECT_EQ(RunOnServer({"batch", "quote", "name", "--input", input}).code, kError);
  const Done job = RunOnServer({"batch", "quote", "bakery", "--input", input});
  EXPECT_EQ(job.code, kError);
  EXPECT_THAT(job.err, HasSubstr("no such job"));
  batches_.quote = absl::UnavailableError("it is not known yet how fast a replica works");
  const Done speed = RunOnServer({"batch", "quote", "shop", "--transactions", "1"});
  EXPECT_EQ(speed.code, kUnreachable);
  EXPECT_THAT(speed.err, HasSubstr("it is not known yet how fast a replica works"));
  EXPECT_EQ(Run({"batch", "quote", "shop", "--transactions", "1"}).code, kError);
}

TEST_F(QuoteCommandTest, WantsEitherAFileOrANumber) {
  for (const std::vector<std::string>& rest :
       std::vector<std::vector<std::string>>{{},
                                             {"--transactions", "0"},
                                             {"--transactions", "1", "--input", "a.csv"},
                                             {"--transactions", "1", "--sla", "soon"},
                                             {"--transactions", "1", "--sla", "0s"},
                                             {"--transactions", "1", "--price", "-1"}}) {
    std::vector<std::string> arguments = {"batch", "quote", "shop"};
    arguments.insert(arguments.end(), rest.begin(), rest.end());
    EXPECT_EQ(RunOnServer(arguments).code, kUsage) << ::testing::PrintToString(rest);
  }
}

}  // namespace
}  // namespace muster::cli
