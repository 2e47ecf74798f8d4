// SPDX-License-Identifier: Apache-2.0

// CallService: single records, over the real stores and roles.
#include "services/initiator/call/call_service.h"

#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/ledger/remote/remote_batch_records.h"
#include "muster/rpc/channel.h"
#include "muster/rpc/server.h"
#include "muster/rpc/status.h"
#include "services/controller/report_service.h"
#include "services/initiator/api/ledger_service.h"
#include "services/initiator/call/call_batches.h"
#include "services/initiator/call/call_gatherer.h"
#include "services/initiator/call/call_outcomes.h"
#include "tests/mesh/batch_service_fixture.h"

namespace muster {
namespace {

namespace call = initiator::call;

using ::testing::HasSubstr;

// Refuses "bad", and gives up each item with "poison" in it.
class PickyHandler final : public handler::Handler {
 public:
  handler::Outcome Process(const handler::WorkItem& item, handler::Results& results) override {
    for (const handler::Transaction& line : item.transactions()) {
      const absl::string_view key = line.fields()[0];
      if (key == "poison") return handler::Outcome::Dead("poisoned");
      if (key == "bad") {
        results.Reject(line, "bad key");
      } else {
        results.Count(line, {{handler::Group{0}, {key}, {base::Decimal::FromInt(1)}}});
      }
    }
    return handler::Outcome::Ok();
  }
};

class CallServiceTest : public BatchServiceTest {
 protected:
  CallServiceTest() {
    rpc::ServerOptions options;
    options.addresses = {"localhost:0"};
    reporter_ =
        rpc::Server::Start(options, {{v1::ReportService::service_full_name(), &reports_}}).value();
    batches_ = std::make_unique<call::CallBatches>(submissions_.get(), &jobs_);
    outcomes_ = std::make_unique<call::CallOutcomes>(
        [this] { return std::vector<std::string>{reporter_->addresses().front()}; },
        rpc::ChannelOptions(), absl::Seconds(10), ledger_.get(),
        [this](const ledger::Batch& batch) { return uploads_->OpenRecorded(batch); });
    call::GatherOptions gathering;
    gathering.look_interval = absl::Milliseconds(5);  // nothing tells it of ends here
    gatherer_ = std::make_unique<call::CallGatherer>(
        call::CallGatherer::Steps{
            .make =
                [this](absl::Span<const v1::CallRequest* const> calls) {
                  return batches_->Make(calls);
                },
            .advance = [this](uint64_t batch) { scheduler_->Advance(batch); },
            .get = [this](uint64_t batch) { return ledger_->Get(batch); },
            .read = [this](uint64_t batch,
                           const auto& visit) { return outcomes_->Read(batch, visit); },
            .why = [](uint64_t) { return "it waits"; }},
        base::RealClock(), gathering);
    calls_ = std::make_unique<call::CallService>(gatherer_.get(), base::RealClock());
    caller_ = rpc::Server::Start(
                  options, {{v1::CallService::service_full_name(), calls_.get(), calls_.get()}})
                  .value();
    call_channel_ = rpc::OpenChannel(caller_->addresses().front()).value();
  }

  ~CallServiceTest() override {
    caller_->Drain(absl::ZeroDuration());
    gatherer_.reset();
  }

  void StartPickyProcessor() {
    StartProcessor(queues_.get(), [] { return std::make_unique<PickyHandler>(); });
  }

  absl::StatusOr<v1::CallResponse> Call(const std::string& record,
                                        const std::string& request_id = "",
                                        absl::Duration timeout = absl::Seconds(60)) {
    v1::CallRequest request;
    request.set_job("count");
    request.set_record(record);
    request.set_request_id(request_id);
    rpc::CallContext context(timeout);
    v1::CallResponse response;
    const absl::Status answered =
        rpc::FromGrpc(v1::CallService::NewStub(call_channel_)->Call(&context, request, &response));
    if (!answered.ok()) return answered;
    return response;
  }

  std::vector<absl::StatusOr<call::CallPlace>> MakeTogether(
      const std::vector<std::string>& records) {
    std::vector<v1::CallRequest> requests;
    for (const std::string& record : records) {
      requests.emplace_back().set_job("count");
      requests.back().set_record(record);
    }
    std::vector<const v1::CallRequest*> calls;
    for (const v1::CallRequest& request : requests) calls.push_back(&request);
    return batches_->Make(calls);
  }

  controller::ReportService reports_{report_.get()};
  std::unique_ptr<rpc::Server> reporter_;
  std::unique_ptr<call::CallBatches> batches_;
  std::unique_ptr<call::CallOutcomes> outcomes_;
  std::unique_ptr<call::CallGatherer> gatherer_;
  std::unique_ptr<call::CallService> calls_;
  std::unique_ptr<rpc::Server> caller_;
  std::shared_ptr<grpc::Channel> call_channel_;
};

TEST_F(CallServiceTest, AnswersARecordOfAJobWithoutOutputsWhenItIsCounted) {
  StartPickyProcessor();
  const auto taken = Call("k1");
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_TRUE(taken->has_accepted());
  EXPECT_EQ(taken->line(), 2) << "behind the header";
  EXPECT_THAT(Receipt(taken->batch()), HasSubstr("\naggregated 1\n"));
  const auto refused = Call("bad");
  ASSERT_TRUE(refused.ok()) << refused.status();
  EXPECT_EQ(refused->rejected().reason(), "bad key");
}

// The report knows nothing here, so what the caller hears is what a controller told over the wire.
TEST_F(CallServiceTest, AnswersACallByWhatTheControllerTellsWithTheCompletion) {
  initiator::api::LedgerService ledger_service(
      ledger_.get(), nullptr, nullptr, nullptr,
      {.wants_outcome = [this](uint64_t batch) { return gatherer_->WaitFor(batch); },
       .on_complete =
           [this](uint64_t batch, const v1::BatchOutcome* outcome) {
             if (outcome != nullptr) gatherer_->NoteOutcome(batch, *outcome);
           }});
  rpc::ServerOptions options;
  options.addresses = {"localhost:0"};
  const auto server =
      rpc::Server::Start(options, {{v1::LedgerService::service_full_name(), &ledger_service}})
          .value();
  ledger::remote::RemoteBatchRecords records(
      [&server] { return std::vector<std::string>{server->addresses().front()}; }, {},
      absl::Seconds(10));
  auto call = std::async(std::launch::async, [this] { return Call("k1"); });
  std::vector<uint64_t> open;
  while (open.empty()) open = ledger_->ListOpen().value();
  ledger::BatchView view;
  while (!view.wants_outcome) view = records.View(open.front(), 10).value();
  EXPECT_EQ(view.batch.state, ledger::BatchState::kSealed);
  EXPECT_EQ(view.items.size(), 1u);
  ASSERT_EQ(records.MarkCompleteAndTell(open.front(), absl::Now(), {{}, {{2, "told"}}}),
            absl::OkStatus());
  const auto answer = call.get();
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->rejected().reason(), "told");
  EXPECT_FALSE(records.View(open.front(), 0)->wants_outcome);
}

TEST_F(CallServiceTest, KeepsNothingOfItsBatchesForLong) {
  StartPickyProcessor();
  const auto gathered = Call("k1"), own = Call("k1", "id");
  ASSERT_TRUE(gathered.ok() && own.ok());
  const ledger::Batch shared = ledger_->Get(gathered->batch()).value();
  EXPECT_EQ(shared.labels.at("muster/call"), "gathered");
  EXPECT_EQ(shared.retention->batch, absl::Minutes(10));
  const ledger::Batch alone = ledger_->Get(own->batch()).value();
  EXPECT_EQ(alone.labels.at("muster/call"), "own");
  EXPECT_EQ(alone.retention->batch, absl::Hours(1));
  for (const ledger::Batch& batch : {shared, alone}) {
    EXPECT_EQ(batch.retention->content, batch.retention->batch);
    EXPECT_EQ(batch.retention->items, batch.retention->batch);
  }
}

TEST_F(CallServiceTest, GivesACallWithARequestIdTheSameAnswerAgain) {
  StartPickyProcessor();
  const auto first = Call("bad", "id");
  const auto again = Call("bad", "id");
  ASSERT_TRUE(first.ok() && again.ok()) << first.status() << again.status();
  EXPECT_EQ(again->batch(), first->batch());
  EXPECT_EQ(again->rejected().reason(), "bad key");
  const absl::Status reused = Call("k1", "id").status();
  ASSERT_TRUE(rpc::Reason(reused).has_value()) << reused;
  EXPECT_EQ(rpc::Reason(reused)->reason, "REQUEST_ID_REUSED");
  EXPECT_EQ(rpc::Reason(reused)->metadata.at("batch"), absl::StrCat(first->batch()));
}

TEST_F(CallServiceTest, TellsEachCallOfAnItemThatWasGivenUp) {
  StartPickyProcessor();
  const auto places = MakeTogether({"k1", "poison", "\"two\nlines\"", "k2"});
  for (const auto& place : places) ASSERT_TRUE(place.ok()) << place.status();
  const uint64_t batch = places[0]->batch;
  scheduler_->Advance(batch);
  ASSERT_TRUE(Watch(batch).ok());
  std::map<int64_t, std::string> causes;
  ASSERT_TRUE(outcomes_
                  ->Read(batch,
                         [&](int64_t line, const absl::StatusOr<v1::CallResponse>& outcome) {
                           causes[line] = outcome->dead_lettered().cause();
                         })
                  .ok());
  ASSERT_EQ(causes.size(), 4);
  for (const auto& place : places) {
    EXPECT_EQ(place->batch, batch);
    EXPECT_THAT(causes[place->line], HasSubstr("poisoned"));
  }
}

TEST_F(CallServiceTest, MakesMoreBatchesOfWhatOneCannotHold) {
  std::vector<std::string> records;
  for (int i = 0; i < 4; ++i) records.push_back(std::string(7000, static_cast<char>('a' + i)));
  records.insert(records.begin() + 2, "not,one,field");
  const auto places = MakeTogether(records);
  EXPECT_TRUE(absl::IsInvalidArgument(places[2].status()));
  EXPECT_EQ(places[0]->batch, places[1]->batch);
  EXPECT_EQ(places[3]->batch, places[4]->batch);
  EXPECT_NE(places[0]->batch, places[3]->batch);
  EXPECT_EQ(places[4]->line, 3);
  EXPECT_EQ(ledger_->Get(places[3]->batch)->content,
            absl::StrCat("key\n", records[3], "\n", records[4], "\n"));
}

TEST_F(CallServiceTest, SaysWhatIsWrongWithACall) {
  EXPECT_TRUE(absl::IsInvalidArgument(Call("a,b").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Call("a", std::string(513, 'x')).status()));
  EXPECT_TRUE(ledger_->ListOpen()->empty());
  EXPECT_TRUE(absl::IsDeadlineExceeded(Call("a", "", absl::Milliseconds(500)).status()));
}

TEST_F(CallServiceTest, AnswersTheCallsOfACancelledBatch) {
  auto answer = std::async(std::launch::async, [this] { return Call("a"); });
  uint64_t seen = 0;
  while (ledger_->ListOpen()->empty()) {
    scheduler_->AwaitNews(&seen, base::RealClock()->Monotonic() + absl::Milliseconds(100));
  }
  const uint64_t batch = ledger_->ListOpen()->front();
  AwaitQueued(batch, 1);
  ASSERT_TRUE(scheduler_->Cancel(batch, "by mistake").ok());
  const absl::Status cancelled = answer.get().status();
  EXPECT_TRUE(absl::IsCancelled(cancelled)) << cancelled;
  EXPECT_THAT(std::string(cancelled.message()), HasSubstr("by mistake"));
}

TEST_F(CallServiceTest, EndsItsCallsWhenItDrains) {
  auto answer = std::async(std::launch::async, [this] { return Call("a"); });
  while (ledger_->ListOpen()->empty()) {
    uint64_t seen = 0;
    scheduler_->AwaitNews(&seen, base::RealClock()->Monotonic() + absl::Milliseconds(100));
  }
  calls_->Drain();
  EXPECT_TRUE(absl::IsUnavailable(answer.get().status()));
}

}  // namespace
}  // namespace muster
