// SPDX-License-Identifier: Apache-2.0

// BatchService: a client's view of its batches, from header to receipt.
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/proto_time.h"
#include "muster/report/report_proto.h"
#include "muster/rpc/channel.h"
#include "muster/rpc/status.h"
#include "muster/v1/batch.pb.h"
#include "muster/v1/batch_service.pb.h"
#include "tests/mesh/batch_service_fixture.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST_F(BatchServiceTest, SeesABatchThroughFromItsHeaderToItsReceipt) {
  StartProcessor();
  const auto submitted = Submit("once", Input(1000));
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  const auto last = Watch(submitted->batch());
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_TRUE(last->complete());
  EXPECT_EQ(last->transactions(), 1000);
  EXPECT_EQ(last->aggregated(), 1000);
  EXPECT_EQ(last->items(), 50);
  EXPECT_EQ(last->progress().committed(), 1000);
  EXPECT_EQ(last->progress().split(), 1);
  EXPECT_EQ(last->handler_version(), "1");
  EXPECT_THAT(Receipt(last->batch()),
              AllOf(HasSubstr("\naggregated 1000\n"), HasSubstr("\nhandler_version 1\n")));
}

// Revisions begin with the time: here the initiator's clock was behind at its restart.
TEST_F(BatchServiceTest, WatchesOnAboveTheRevisionAtWhichAWatchWasCutOff) {
  constexpr uint64_t kAhead = uint64_t{1} << 60;
  StartProcessor();
  const auto submitted = Submit("watched", Input(100));
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  ASSERT_TRUE(Watch(submitted->batch()).ok());
  grpc::ClientContext context;
  v1::WatchBatchRequest request;
  request.set_batch(submitted->batch());
  request.set_after_revision(kAhead);
  const auto watch = stub_->WatchBatch(&context, request);
  v1::WatchBatchResponse response;
  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.status().revision(), kAhead + 1);
  EXPECT_TRUE(response.status().complete());
  EXPECT_FALSE(watch->Read(&response)) << "it is over";
  EXPECT_TRUE(watch->Finish().ok());
}

TEST_F(BatchServiceTest, BindsABatchToNoVersionThatIsSubmittedWhileNoProcessorIsThere) {
  current_version_ = "";
  const auto submitted = Submit("early", Input(1000));
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  EXPECT_EQ(submitted->handler_version(), "");
  StartProcessor();
  const auto last = Watch(submitted->batch());
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_EQ(last->aggregated(), 1000);
  EXPECT_EQ(last->handler_version(), "");
  EXPECT_THAT(Receipt(last->batch()),
              AllOf(HasSubstr("\nhandler_version \n"), HasSubstr("\nitems_by_version 50 1\n")));
}

TEST_F(BatchServiceTest, KeepsABatchUnboundWhoeverComesBeforeItIsSubmittedAgain) {
  current_version_ = "";
  const auto submitted = Submit("early", Input(100));
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  current_version_ = "1";
  const auto again = Submit("early", Input(100));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->batch(), submitted->batch());
  EXPECT_EQ(again->handler_version(), "");
  v1::SubmitHeader bound = Header("early");
  bound.set_handler_version("1");
  Upload upload(stub_.get());
  upload.SendHeader(bound);
  const absl::Status reused = upload.End();
  ASSERT_TRUE(rpc::Reason(reused).has_value()) << reused;
  EXPECT_EQ(rpc::Reason(reused)->reason, "REQUEST_ID_REUSED");
  EXPECT_THAT(std::string(reused.message()), HasSubstr("of no handler version"));
}

TEST_F(BatchServiceTest, MakesNoBatchWhileItCannotBeToldWhatItIsBoundTo) {
  current_version_ = absl::UnavailableError("not heard yet");
  Upload upload(stub_.get());
  upload.SendHeader(Header("soon"));
  EXPECT_TRUE(absl::IsUnavailable(upload.End()));
  EXPECT_TRUE(ledger_->ListOpen()->empty());
}

TEST_F(BatchServiceTest, PromisesOneBatchWhatItsSubmitterAsksFor) {
  v1::SubmitHeader header = Header("hurried");
  *header.mutable_sla() = base::ToProto(absl::Nanoseconds(1));
  Upload refused(stub_.get());
  refused.SendHeader(header);
  EXPECT_TRUE(absl::IsInvalidArgument(refused.End()));
  *header.mutable_sla() = base::ToProto(absl::Milliseconds(1));
  const auto submitted =
      client::Submit(channel_, header, input::TextSource(Input(10)), {}, base::RealClock(), {});
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  StartProcessor();
  const auto last = Watch(submitted->batch());
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_EQ(base::FromProto(last->sla()), absl::Milliseconds(1));
  EXPECT_EQ(base::FromProto(last->late_by()),
            base::FromProto(last->completed()) - base::FromProto(last->deadline()));
  EXPECT_GT(base::FromProto(last->late_by()), absl::ZeroDuration());
}

TEST_F(BatchServiceTest, TellsAWatcherOnceThatABatchIsLate) {
  v1::SubmitHeader header = Header("late");
  *header.mutable_sla() = base::ToProto(absl::Milliseconds(1));
  const auto submitted =
      client::Submit(channel_, header, input::TextSource(Input(10)), {}, base::RealClock(), {});
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  rpc::CallContext context(absl::Seconds(1));  // in which its status is computed several times
  v1::WatchBatchRequest request;
  request.set_batch(submitted->batch());
  const auto watch = stub_->WatchBatch(&context, request);
  v1::WatchBatchResponse response;
  std::set<std::string> told;  // without what changes with time
  while (watch->Read(&response)) {
    v1::BatchStatus* const status = response.mutable_status();
    status->clear_revision();
    status->clear_seconds();
    status->clear_transactions_per_second();
    if (status->late_by().nanos() > 0) status->mutable_late_by()->set_nanos(1);
    status->mutable_late_by()->set_seconds(0);
    EXPECT_TRUE(told.insert(status->SerializeAsString()).second) << status->DebugString();
  }
  EXPECT_TRUE(absl::IsDeadlineExceeded(rpc::FromGrpc(watch->Finish())));
  EXPECT_FALSE(told.empty());
}

TEST_F(BatchServiceTest, KnowsNoJobThatWasNotApplied) {
  v1::SubmitHeader header = Header("x");
  header.set_job("unheard-of");
  Upload upload(stub_.get());
  upload.SendHeader(header);
  const absl::Status unknown = upload.End();
  EXPECT_TRUE(absl::IsNotFound(unknown)) << unknown;
  EXPECT_EQ(rpc::Reason(unknown), (rpc::ErrorReason{"NO_SUCH_JOB", {{"job", "unheard-of"}}}));
}

TEST_F(BatchServiceTest, ListsBatchesNewestFirstPageByPage) {
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(Submit(absl::StrCat("r", i), Input(1)).ok());
  const auto page = [this](const std::string& token) {
    rpc::CallContext context;
    v1::ListBatchesRequest request;
    request.set_page_size(2);
    request.set_page_token(token);
    v1::ListBatchesResponse response;
    const absl::Status listed = rpc::FromGrpc(stub_->ListBatches(&context, request, &response));
    EXPECT_TRUE(listed.ok()) << listed;
    return response;
  };
  std::vector<std::vector<uint64_t>> pages;
  std::string token;
  do {
    const v1::ListBatchesResponse response = page(token);
    pages.emplace_back();
    for (const v1::BatchStatus& batch : response.batches()) pages.back().push_back(batch.batch());
    token = response.next_page_token();
  } while (!token.empty());
  EXPECT_THAT(pages, ElementsAre(ElementsAre(5, 4), ElementsAre(3, 2), ElementsAre(1)));
}

TEST_F(BatchServiceTest, AListAsksTheReportOnce) {
  StartProcessor();
  for (int i = 0; i < 5; ++i) {
    const auto submitted = Submit(absl::StrCat("r", i), Input(1));
    ASSERT_TRUE(submitted.ok()) << submitted.status();
    ASSERT_TRUE(Watch(submitted->batch()).ok());
  }
  StopInitiator();
  StartInitiator();
  const int before = report_client_->lists_asked();
  rpc::CallContext context;
  v1::ListBatchesResponse response;
  const absl::Status listed =
      rpc::FromGrpc(stub_->ListBatches(&context, v1::ListBatchesRequest(), &response));
  ASSERT_TRUE(listed.ok()) << listed;
  ASSERT_EQ(response.batches_size(), 5);
  for (const v1::BatchStatus& batch : response.batches()) EXPECT_EQ(batch.aggregated(), 1);
  EXPECT_EQ(report_client_->lists_asked(), before + 1);
}

TEST_F(BatchServiceTest, ListsTheBatchesOfOneStateAndJob) {
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(Submit(absl::StrCat("r", i), Input(1)).ok());
  ASSERT_TRUE(scheduler_->Cancel(3, "unwanted").ok());
  const auto list = [this](std::vector<v1::BatchState> states, const std::string& job,
                           int page_size) {
    rpc::CallContext context;
    v1::ListBatchesRequest request;
    request.mutable_states()->Add(states.begin(), states.end());
    request.set_job(job);
    request.set_page_size(page_size);
    v1::ListBatchesResponse response;
    EXPECT_TRUE(rpc::FromGrpc(stub_->ListBatches(&context, request, &response)).ok());
    std::vector<std::string> numbers;
    for (const v1::BatchStatus& batch : response.batches()) {
      numbers.push_back(absl::StrCat(batch.batch()));
    }
    if (!response.next_page_token().empty()) numbers.push_back("more");
    return absl::StrJoin(numbers, " ");
  };
  const std::vector<v1::BatchState> open = {v1::BATCH_STATE_OPEN, v1::BATCH_STATE_SEALED};
  EXPECT_EQ(list(open, "count", 10), "4 2 1");
  EXPECT_EQ(list(open, "count", 2), "4 2 more");
  EXPECT_EQ(list({v1::BATCH_STATE_CANCELLED}, "", 10), "3");
  EXPECT_EQ(list(open, "other", 10), "");
}

TEST_F(BatchServiceTest, KeepsTheLabelsOfABatchAndFindsItByThem) {
  v1::SubmitHeader header = Header("labelled");
  (*header.mutable_labels())["team"] = "billing";
  const auto submitted =
      client::Submit(channel_, header, input::TextSource(Input(1)), {}, base::RealClock(), {});
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  ASSERT_TRUE(Submit("plain", Input(1)).ok());
  StopInitiator();
  StartInitiator();
  const auto list = [this](const v1::ListBatchesRequest& request) {
    rpc::CallContext context;
    v1::ListBatchesResponse response;
    const absl::Status listed = rpc::FromGrpc(stub_->ListBatches(&context, request, &response));
    EXPECT_TRUE(listed.ok()) << listed;
    return response;
  };
  v1::ListBatchesRequest request;
  (*request.mutable_labels())["team"] = "billing";
  const v1::ListBatchesResponse found = list(request);
  ASSERT_EQ(found.batches_size(), 1);
  EXPECT_EQ(found.batches(0).batch(), submitted->batch());
  EXPECT_THAT(found.batches(0).labels(), ElementsAre(Pair("team", "billing")));
  (*request.mutable_labels())["team"] = "other";
  EXPECT_EQ(list(request).batches_size(), 0);
  request.Clear();
  *request.mutable_since() = base::ToProto(absl::Now() + absl::Hours(1));
  EXPECT_EQ(list(request).batches_size(), 0);
  request.Clear();
  request.set_late(true);
  EXPECT_EQ(list(request).batches_size(), 0);
}

TEST_F(BatchServiceTest, NamesTheLabelThatABatchCannotHave) {
  v1::SubmitHeader header = Header("wrong");
  for (const char* const label : {"muster/call", "a b"}) {
    header.clear_labels();
    (*header.mutable_labels())[label] = "";
    Upload upload(stub_.get());
    upload.SendHeader(header);
    const absl::Status refused = upload.End();
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
    EXPECT_EQ(rpc::Violations(refused).front().field, "header.labels");
  }
  rpc::CallContext context;
  v1::ListBatchesRequest request;
  *request.mutable_labels() = header.labels();
  v1::ListBatchesResponse response;
  const absl::Status unlisted = rpc::FromGrpc(stub_->ListBatches(&context, request, &response));
  EXPECT_EQ(rpc::Violations(unlisted).front().field, "labels");
}

// A user without a controller saw no batch at all, though the ledger knows most of each.
TEST_F(BatchServiceTest, ListsBatchesThatAreDoneWhileNoControllerAnswers) {
  StartProcessor();
  ASSERT_TRUE(Submit("done", Input(3)).ok());
  ASSERT_TRUE(Watch(1)->complete());
  StopInitiator();
  StartInitiator();
  const auto list = [this] {
    rpc::CallContext context;
    v1::ListBatchesResponse response;
    const absl::Status listed = rpc::FromGrpc(stub_->ListBatches(&context, {}, &response));
    EXPECT_TRUE(listed.ok()) << listed;
    return response.batches(0);
  };
  report_client_->AnswerLists(absl::UnavailableError("no controller is known"));
  const v1::BatchStatus unknown = list();
  EXPECT_TRUE(unknown.complete());
  EXPECT_EQ(unknown.progress().read(), 3);
  EXPECT_EQ(unknown.counts_problem(), "no controller is known");
  EXPECT_EQ(unknown.problem(), "") << "the batch waits for nothing";
  report_client_->AnswerLists(absl::OkStatus());
  EXPECT_EQ(list().counts_problem(), "");
  EXPECT_EQ(list().aggregated(), 3);
}

// Chaos runs saw a number that was withdrawn a moment later, and took its request for two batches.
TEST_F(BatchServiceTest, ShowsNoBatchThatMayStillBeWithdrawn) {
  ledger::Batch batch;
  batch.number = 77;
  batch.request_id = "of another";
  batch.job = "count";
  batch.undecided = true;
  batch.created = absl::Now();
  ASSERT_TRUE(ledger_->Create(batch).ok());
  rpc::CallContext listing;
  v1::ListBatchesResponse listed;
  ASSERT_TRUE(rpc::FromGrpc(stub_->ListBatches(&listing, {}, &listed)).ok());
  EXPECT_EQ(listed.batches_size(), 0);
  EXPECT_TRUE(absl::IsNotFound(scheduler_->Get(77).status()));
  ASSERT_TRUE(ledger_->NoteDecided(77).ok());
  EXPECT_TRUE(scheduler_->Get(77).ok());
}

TEST_F(BatchServiceTest, DeletesABatchThatHasEnded) {
  StartProcessor();
  ASSERT_TRUE(Submit("done", Input(1)).ok());
  ASSERT_TRUE(Watch(1)->complete());
  ASSERT_TRUE(processor_->Stop(absl::Seconds(10)).ok());
  ASSERT_TRUE(Submit("waits", Input(1)).ok());
  const auto remove = [this](uint64_t batch) {
    rpc::CallContext context;
    v1::DeleteBatchRequest request;
    request.set_batch(batch);
    v1::DeleteBatchResponse response;
    return rpc::FromGrpc(stub_->DeleteBatch(&context, request, &response));
  };
  EXPECT_TRUE(absl::IsFailedPrecondition(remove(2)));
  ASSERT_TRUE(remove(1).ok());
  EXPECT_TRUE(absl::IsNotFound(remove(1)));
  EXPECT_TRUE(absl::IsNotFound(Watch(1).status()));
  EXPECT_TRUE(absl::IsNotFound(report_client_->GetReceipt(1).status()));
  // The request id is free again, and the number is not.
  EXPECT_EQ(Submit("done", Input(1))->batch(), 3u);
}

// As when the data directory of its initiator is lost.
TEST_F(BatchServiceTest, SaysOfABatchWithoutALedgerThatTheReportHasIt) {
  ASSERT_TRUE(report_->RegisterBatch(report::ShapeOf(77, job_.schema())).ok());
  const absl::Status told = Watch(77).status();
  EXPECT_TRUE(absl::IsNotFound(told)) << told;
  EXPECT_THAT(told.message(), HasSubstr("no ledger of batch 77, but the report has 0 transactions "
                                        "of it, of job 'count'"));
  EXPECT_THAT(told.message(), HasSubstr("`muster report 77` shows what is counted"));
}

TEST_F(BatchServiceTest, KnowsNoBatchThatWasNeverSubmitted) {
  EXPECT_TRUE(absl::IsNotFound(Watch(77).status()));
}

}  // namespace
}  // namespace muster
