// SPDX-License-Identifier: Apache-2.0

// On real servers on loopback.
#include "services/initiator/api/quotes.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/proto_time.h"
#include "muster/ledger/rocksdb/rocksdb_batch_ledger.h"
#include "muster/os/temp_dir.h"
#include "muster/rpc/channel.h"
#include "muster/rpc/server.h"
#include "muster/rpc/status.h"
#include "services/initiator/api/batch_service.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/client/fake_scaling_agent.h"
#include "tests/fakes/job/job_text.h"
#include "tests/fakes/sync/memory_sync_store.h"

namespace muster::initiator::api {
namespace {

using client::testing::AgentState;
using client::testing::FakeAgent;
using ::testing::HasSubstr;

constexpr absl::Duration kPatience = absl::Minutes(2);

// Job "shop" has items of 500 transactions. The second of two agents leads.
class QuotesTest : public ::testing::Test {
 protected:
  QuotesTest() {
    EXPECT_TRUE(jobs_.Apply(job::JobText("shop"), std::nullopt).ok());
    standby_.StepDown(agent_.address());
    v1::SimulateResponse answer;
    answer.set_target("tills");
    answer.set_feasible(false);
    *answer.mutable_finish() = base::ToProto(absl::FromUnixSeconds(390));
    *answer.mutable_deadline() = base::ToProto(absl::FromUnixSeconds(300));
    *answer.mutable_late_by() = base::ToProto(absl::Seconds(90));
    answer.set_replicas_now(1);
    answer.set_replicas(2);
    answer.set_needs(3);
    answer.set_max(4);
    answer.set_replica_seconds(810.5);
    *answer.mutable_shortest_sla() = base::ToProto(absl::Seconds(390));
    answer.set_explanation("Done too late.");
    Answer(answer);
    rpc::ServerOptions options;
    options.addresses = {"localhost:0"};
    server_ =
        rpc::Server::Start(options, {{v1::BatchService::service_full_name(), &service_}}).value();
    rpc::ChannelOptions once;
    once.retry_unavailable = false;
    stub_ = v1::BatchService::NewStub(rpc::OpenChannel(server_->addresses().front(), once).value());
  }

  void Answer(const absl::StatusOr<v1::SimulateResponse>& answer) {
    agent_.Tell([&](AgentState& state) { state.simulated = answer; });
  }

  absl::StatusOr<v1::QuoteResponse> Quote(int64_t transactions, const std::string& job = "shop",
                                          absl::Duration timeout = kPatience) {
    v1::QuoteRequest request;
    request.set_job(job);
    request.set_transactions(transactions);
    return Quote(request, timeout);
  }
  absl::StatusOr<v1::QuoteResponse> Quote(const v1::QuoteRequest& request,
                                          absl::Duration timeout = kPatience) {
    rpc::CallContext context(timeout);
    v1::QuoteResponse response;
    const grpc::Status status = stub_->Quote(&context, request, &response);
    if (!status.ok()) return rpc::FromGrpc(status);
    return response;
  }

  base::FakeClock clock_;
  sync::testing::MemorySyncStore store_;
  job::JobRegistry jobs_{&store_, &clock_};
  FakeAgent standby_, agent_;
  std::vector<std::string> known_ = {standby_.address(), agent_.address()};
  client::ScalingLeaderClient leader_{[this] { return known_; }, {}};
  const os::TempDir dir_;
  const std::unique_ptr<ledger::rocksdb::RocksDbBatchLedger> ledger_ =
      ledger::rocksdb::RocksDbBatchLedger::Open(dir_ / "ledger", {}).value();
  Quotes quotes_{{&jobs_, &leader_, ledger_.get(), &clock_}, "acme"};
  BatchService service_{{.quotes = &quotes_}};
  std::unique_ptr<rpc::Server> server_;
  std::unique_ptr<v1::BatchService::Stub> stub_;
};

TEST_F(QuotesTest, AsksTheAgentThatLeadsByTheJobsQueue) {
  const auto quote = Quote(1001);
  ASSERT_TRUE(quote.ok()) << quote.status();
  const v1::SimulateRequest asked = agent_.state().simulate;
  EXPECT_EQ(asked.queue(), "shop-in-0");
  EXPECT_EQ(asked.target(), "");
  EXPECT_EQ(asked.items(), 3);
  EXPECT_FALSE(asked.has_sla()) << "the agent's rules promise";
  EXPECT_EQ(asked.items_per_second(), 0);
  EXPECT_EQ(quote->items(), 3);
}

TEST_F(QuotesTest, PassesTheAnswerOnWhole) {
  const auto quote = Quote(500);
  ASSERT_TRUE(quote.ok()) << quote.status();
  EXPECT_EQ(quote->items(), 1);
  EXPECT_FALSE(quote->feasible());
  EXPECT_EQ(quote->finish().seconds(), 390);
  EXPECT_EQ(quote->deadline().seconds(), 300);
  EXPECT_EQ(quote->late_by().seconds(), 90);
  EXPECT_EQ(quote->replicas_now(), 1);
  EXPECT_EQ(quote->replicas(), 2);
  EXPECT_EQ(quote->needs(), 3);
  EXPECT_EQ(quote->max(), 4);
  EXPECT_EQ(quote->replica_seconds(), 810.5);
  EXPECT_EQ(quote->shortest_sla().seconds(), 390);
  EXPECT_EQ(quote->explanation(), "Done too late.");
}

TEST_F(QuotesTest, LeavesUnsetWhatTheAgentDoes) {
  Answer(v1::SimulateResponse());
  const auto quote = Quote(500);
  ASSERT_TRUE(quote.ok()) << quote.status();
  EXPECT_FALSE(quote->has_finish());
  EXPECT_FALSE(quote->has_late_by());
  EXPECT_FALSE(quote->has_shortest_sla());
}

TEST_F(QuotesTest, PassesAPromiseOn) {
  v1::QuoteRequest request;
  request.set_job("shop");
  request.set_transactions(10'000'000'000);
  *request.mutable_sla() = base::ToProto(absl::Seconds(90));
  ASSERT_TRUE(Quote(request).ok());
  EXPECT_EQ(agent_.state().simulate.sla().seconds(), 90);
  EXPECT_EQ(agent_.state().simulate.items(), 20'000'000);
}

TEST_F(QuotesTest, RefusesWhatIsNoBatch) {
  for (const int64_t transactions : {int64_t{0}, int64_t{-5}, int64_t{10'000'000'001}}) {
    const absl::Status status = Quote(transactions).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_EQ(rpc::Violations(status).front().field, "transactions");
  }
  v1::QuoteRequest request;
  request.set_job("shop");
  request.set_transactions(1);
  request.mutable_sla();
  EXPECT_EQ(rpc::Violations(Quote(request).status()).front().field, "sla");
  EXPECT_EQ(rpc::Violations(Quote(1, "").status()).front().field, "job");
  EXPECT_EQ(agent_.state().calls, 0);
}

TEST_F(QuotesTest, SaysWhatIsNotThere) {
  const absl::Status job = Quote(1, "bakery").status();
  EXPECT_TRUE(absl::IsNotFound(job));
  EXPECT_EQ(job.message(), "no job 'bakery'");
  EXPECT_EQ(rpc::Reason(job), (rpc::ErrorReason{"NO_SUCH_JOB", {{"job", "bakery"}}}));
  Answer(absl::NotFoundError("no target has the queue shop-in-0"));
  const absl::Status target = Quote(1).status();
  EXPECT_TRUE(absl::IsNotFound(target));
  EXPECT_EQ(target.message(), "job 'shop': no target has the queue shop-in-0");
}

TEST_F(QuotesTest, IsUnavailableWhereNobodyLeadsOrKnows) {
  Answer(absl::UnavailableError("not known yet"));
  EXPECT_TRUE(absl::IsUnavailable(Quote(1).status()));
  EXPECT_THAT(std::string(Quote(1).status().message()), HasSubstr("not known yet"));
  agent_.StepDown("");
  EXPECT_TRUE(absl::IsUnavailable(Quote(1).status()));
  known_.clear();
  const absl::Status status = Quote(1).status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("job 'shop': no scaling agent is known; "));
}

// Batches of "shop": one of 1,000 transactions that took 100 s, and one of 3,000 that took 100 s,
// while no agent is known.
class MeasuredQuotesTest : public QuotesTest {
 protected:
  MeasuredQuotesTest() {
    known_.clear();
    Complete(1, "shop", 1000, absl::Seconds(100));
    Complete(2, "other", 1'000'000, absl::Seconds(1));
    Complete(3, "shop", 3000, absl::Seconds(100));
  }

  void Begin(uint64_t number, const std::string& job, uint32_t transactions) {
    ledger::Batch batch;
    batch.number = number;
    batch.request_id = absl::StrCat(number);
    batch.job = job;
    batch.created = clock_.Now();
    ledger::ItemBoundary item;
    item.length = 10;
    item.transactions = transactions;
    ASSERT_TRUE(ledger_->Create(batch, {&item, 1}).ok());
    ASSERT_TRUE(ledger_->Seal(number, 10).ok());
  }
  void Complete(uint64_t number, const std::string& job, uint32_t transactions,
                absl::Duration takes) {
    Begin(number, job, transactions);
    ASSERT_TRUE(ledger_->MarkComplete(number, clock_.Now() + takes).ok());
  }
};

TEST_F(MeasuredQuotesTest, AreMadeOfTheLastBatchesWhereNoAgentAnswersAndSaySo) {
  const auto quote = Quote(10'000);
  ASSERT_TRUE(quote.ok()) << quote.status();
  EXPECT_EQ(quote->measured_batches(), 2);
  EXPECT_EQ(quote->items(), 20);
  EXPECT_EQ(base::FromProto(quote->finish()), clock_.Now() + absl::Seconds(500));
  EXPECT_EQ(quote->shortest_sla().seconds(), 500);
  EXPECT_EQ(quote->replicas(), 0);
  EXPECT_EQ(
      quote->explanation(),
      "No scaling agent makes this forecast: it is from the measured speed of the job's last 2 "
      "batches, 20.0 transactions/s from submit to end, with the workers that there were.");
}

TEST_F(MeasuredQuotesTest, KeepAPromiseOrSayHowLateItWouldBe) {
  v1::QuoteRequest request;
  request.set_job("shop");
  request.set_transactions(10'000);
  *request.mutable_sla() = base::ToProto(absl::Seconds(500));
  EXPECT_TRUE(Quote(request)->feasible());
  *request.mutable_sla() = base::ToProto(absl::Seconds(440));
  EXPECT_FALSE(Quote(request)->feasible());
  EXPECT_EQ(Quote(request)->late_by().seconds(), 60);
}

TEST_F(MeasuredQuotesTest, TakeNoBatchForFasterThanTheFastestWas) {
  EXPECT_EQ(Quote(1)->shortest_sla().seconds(), 100);
}

TEST_F(MeasuredQuotesTest, PutWhatIsOpenFirst) {
  Begin(4, "shop", 2000);
  const auto quote = Quote(10'000);
  EXPECT_EQ(quote->shortest_sla().seconds(), 600);
  EXPECT_THAT(quote->explanation(), HasSubstr(" 2000 transactions of open batches come first."));
}

TEST_F(MeasuredQuotesTest, LeaveTheWordToAnAgentThatAnswers) {
  known_ = {agent_.address()};
  EXPECT_EQ(Quote(10'000)->measured_batches(), 0);
  Answer(absl::NotFoundError("no target has the queue shop-in-0"));
  EXPECT_TRUE(absl::IsNotFound(Quote(10'000).status()));
  Answer(absl::UnavailableError("no speed is known yet"));
  EXPECT_EQ(Quote(10'000)->measured_batches(), 2);
}

TEST_F(QuotesTest, GivesTheAgentNoLongerThanTheCallerGives) {
  EXPECT_TRUE(absl::IsDeadlineExceeded(Quote(1, "shop", absl::ZeroDuration()).status()));
  EXPECT_EQ(agent_.state().calls, 0);
}

}  // namespace
}  // namespace muster::initiator::api
