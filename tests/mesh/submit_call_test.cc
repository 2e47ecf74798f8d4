// SPDX-License-Identifier: Apache-2.0

// BatchService.Submit: uploads, whole and in pieces, and what is refused.
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "muster/base/fingerprint.h"
#include "muster/v1/batch.pb.h"
#include "tests/fakes/sync/memory_sync_store.h"
#include "tests/mesh/batch_service_fixture.h"

namespace muster {
namespace {

TEST_F(BatchServiceTest, RecordsSeveralBatchesAtATime) {
  on_version_ = [this] { EXPECT_EQ(Submit("meanwhile", Input(10))->batch(), 1); };
  const auto submitted = Submit("first", Input(10));
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  EXPECT_EQ(submitted->batch(), 2);
}

TEST_F(BatchServiceTest, NeverMakesASecondBatchOfARequest) {
  StartProcessor();
  const auto first = Submit("same", Input(100));
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(Watch(first->batch()).ok());
  const auto again = Submit("same", Input(100));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->batch(), first->batch());
  EXPECT_TRUE(again->complete());
  const auto new_one = Submit("another", Input(100));
  ASSERT_TRUE(new_one.ok()) << new_one.status();
  EXPECT_NE(new_one->batch(), first->batch());
}

TEST_F(BatchServiceTest, SaysWhichBatchHasTheRequestIdOfOtherContent) {
  const std::string text = Input(100);
  std::string changed = text;
  changed.back() = 'x';
  const auto expect_refused = [this](const std::string& other) {
    const absl::Status reused = Submit("mine", other).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(reused)) << reused;
    EXPECT_EQ(reused.message(),
              "this request id belongs to batch 1 with other content: choose another one");
    ASSERT_TRUE(rpc::Reason(reused).has_value());
    EXPECT_EQ(rpc::Reason(reused)->reason, "REQUEST_ID_REUSED");
    EXPECT_EQ(rpc::Reason(reused)->metadata.at("batch"), "1");
  };
  ASSERT_EQ(Submit("mine", text)->batch(), 1);
  for (const std::string& other : {Input(101), Input(99), changed}) expect_refused(other);
  StartProcessor();
  ASSERT_TRUE(Watch(1)->complete());
  for (const std::string& other : {Input(101), Input(99), changed}) expect_refused(other);
  EXPECT_TRUE(Submit("mine", text)->complete());
}

TEST_F(BatchServiceTest, RefusesARequestIdOfAnotherJobOrRevision) {
  ASSERT_TRUE(Submit("mine", Input(10)).ok());
  ASSERT_TRUE(jobs_
                  .Apply(absl::StrCat(kJob, "  - {name: all, keys: [key], measures: {n: int}}\n"),
                         std::nullopt)
                  .ok());
  const absl::Status reused = Submit("mine", Input(10)).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(reused)) << reused;
  ASSERT_TRUE(rpc::Reason(reused).has_value());
  EXPECT_EQ(rpc::Reason(reused)->reason, "REQUEST_ID_REUSED");
  EXPECT_EQ(rpc::Reason(reused)->metadata.at("batch"), "1");
}

// The store of the jobs was lost; the ledger has the job of each batch.
TEST_F(BatchServiceTest, TakesABatchOfAJobThatOnlyTheLedgerStillHas) {
  ASSERT_TRUE(Submit("march", Input(10)).ok());
  sync::testing::MemorySyncStore empty;
  job::JobRegistry jobs(&empty, base::RealClock());
  initiator::submit::Submissions submissions(
      {&jobs, ledger_.get(), &numbers_, uploads_.get(),
       [](const job::JobDefinition&) { return "1"; },
       [](const job::JobDefinition&) { return absl::OkStatus(); }, base::RealClock()});
  const auto april = submissions.Begin(Header("april"));
  ASSERT_TRUE(april.ok()) << april.status();
  EXPECT_EQ(april->job_revision, job_.revision);
  EXPECT_EQ(jobs.Get("count")->definition, kJob);
  v1::SubmitHeader bakery = Header("may");
  bakery.set_job("bakery");
  EXPECT_TRUE(absl::IsNotFound(submissions.Begin(bakery).status()));
  ASSERT_TRUE(jobs.Delete("count").ok());
  EXPECT_TRUE(absl::IsNotFound(submissions.Begin(Header("june")).status())) << "it was deleted";
}

TEST_F(BatchServiceTest, GoesOnWithAnUploadWhereItsDurableContentEnds) {
  const std::string text = Input(1000);
  {
    Upload cut_off(stub_.get());
    cut_off.SendHeader(Header("resumed"));
    EXPECT_EQ(cut_off.Hear().accepted().durable_offset(), 0);
    cut_off.SendChunk(0, text.substr(0, 700));
    EXPECT_EQ(cut_off.Hear().durable().durable_offset(), 700);
    cut_off.context.TryCancel();
    cut_off.stream->Finish();
  }
  StopInitiator();
  StartInitiator();
  Upload resumed(stub_.get());
  resumed.SendHeader(Header("resumed"));
  const v1::SubmitResponse accepted = resumed.Hear();
  EXPECT_EQ(accepted.accepted().batch(), 1);
  EXPECT_EQ(accepted.accepted().durable_offset(), 700);
  resumed.SendChunk(700, text.substr(700));
  EXPECT_EQ(resumed.Hear().durable().durable_offset(), text.size());
  resumed.SendSeal(text.size(), base::Fingerprint(text));
  EXPECT_EQ(resumed.Hear().sealed().status().batch(), 1);
  EXPECT_EQ(resumed.End(), absl::OkStatus());
  StartProcessor();
  const auto last = Watch(1);
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_EQ(last->aggregated(), 1000);
}

class CutUploadTest : public BatchServiceTest {
 protected:
  void Restart(absl::Duration sender_grace) {
    StopInitiator();
    sender_grace_ = sender_grace;
    StartInitiator();
  }

  std::string Problem(uint64_t batch) {
    rpc::CallContext context;
    v1::GetBatchRequest request;
    request.set_batch(batch);
    v1::GetBatchResponse response;
    EXPECT_TRUE(stub_->GetBatch(&context, request, &response).ok());
    return response.status().problem();
  }

  // Sends a part of batch 1 and goes away.
  void CutOff(const std::string& tenant = "", const std::string& request_id = "halved") {
    Upload upload(stub_.get());
    v1::SubmitHeader header = Header(request_id);
    header.set_tenant(tenant);
    upload.SendHeader(header);
    EXPECT_EQ(upload.Hear().accepted().batch(), 1);
    upload.SendChunk(0, "key\n");
    EXPECT_EQ(upload.Hear().durable().durable_offset(), 4);
    EXPECT_EQ(Problem(1), "") << "somebody sends it";
    upload.context.TryCancel();
    upload.stream->Finish();
  }

  static constexpr char kMissing[] =
      "the rest of its upload is missing: submit it again with --request-id 'halved', or "
      "`muster batch cancel 1`";
};

TEST_F(CutUploadTest, IsAProblemOfItsBatchUntilSomebodyGoesOn) {
  Restart(absl::ZeroDuration());
  CutOff();
  for (uint64_t seen = 0; Problem(1).empty();) {
    scheduler_->AwaitNews(&seen, base::RealClock()->Monotonic() + absl::Seconds(1));
  }
  EXPECT_EQ(Problem(1), kMissing);
  Restart(absl::ZeroDuration());
  EXPECT_EQ(Problem(1), kMissing) << "it waits for the same after a restart";
  Upload resumed(stub_.get());
  resumed.SendHeader(Header("halved"));
  EXPECT_EQ(resumed.Hear().accepted().durable_offset(), 4);
  EXPECT_EQ(Problem(1), "");
}

// The same id without the tenant would begin another batch.
TEST_F(CutUploadTest, IsGoneOnWithByItsTenant) {
  Restart(absl::ZeroDuration());
  CutOff("acme");
  for (uint64_t seen = 0; Problem(1).empty();) {
    scheduler_->AwaitNews(&seen, base::RealClock()->Monotonic() + absl::Seconds(1));
  }
  EXPECT_EQ(
      Problem(1),
      "the rest of its upload is missing: submit it again with --request-id 'halved' --tenant "
      "'acme', or `muster batch cancel 1`");
}

// It may be any bytes, and once no list could show its batch, or those beside it.
TEST_F(CutUploadTest, IsShownWhateverItsRequestId) {
  Restart(absl::ZeroDuration());
  CutOff("", "\xff");
  for (uint64_t seen = 0; Problem(1).empty();) {
    scheduler_->AwaitNews(&seen, base::RealClock()->Monotonic() + absl::Seconds(1));
  }
  EXPECT_EQ(Problem(1),
            "the rest of its upload is missing: submit it again with --request-id '?', or "
            "`muster batch cancel 1`");
}

TEST_F(CutUploadTest, IsNoProblemWhileItsSenderMayComeBack) {
  CutOff();
  Restart(absl::Hours(1));
  EXPECT_EQ(Problem(1), "");
}

TEST_F(CutUploadTest, IsNoneWhereAllHasArrivedAndIsNotSplitYet) {
  Restart(absl::ZeroDuration());
  report_client_->HoldRegistrations(true);
  for (const int lines : {1000, 5000}) {  // in its record, and in a file
    const auto submitted = Submit(absl::StrCat("whole ", lines), Input(lines));
    ASSERT_TRUE(submitted.ok()) << submitted.status();
    EXPECT_EQ(ledger_->Get(submitted->batch())->state, ledger::BatchState::kOpen);
    EXPECT_EQ(Problem(submitted->batch()), "");
  }
  report_client_->HoldRegistrations(false);
}

TEST_F(BatchServiceTest, TakesContentThatDoesNotWaitUntilItsHeaderIsAccepted) {
  const std::string text = Input(100);
  Upload upload(stub_.get());
  upload.SendHeader(Header("at once"));
  upload.SendChunk(0, text);
  upload.SendSeal(text.size(), base::Fingerprint(text));
  const uint64_t batch = upload.Hear().accepted().batch();
  EXPECT_TRUE(upload.End().ok());
  AwaitQueued(batch, 5);
}

TEST_F(BatchServiceTest, LetsANewerStreamTakeAnUploadOver) {
  Upload old_stream(stub_.get());
  old_stream.SendHeader(Header("shared"));
  old_stream.Hear();
  Upload new_stream(stub_.get());
  new_stream.SendHeader(Header("shared"));
  new_stream.Hear();
  old_stream.SendChunk(0, "key\n");
  EXPECT_EQ(old_stream.End(),
            absl::AbortedError("another submit goes on with the upload of batch 1"));
  new_stream.SendChunk(0, "key\n");
  EXPECT_EQ(new_stream.Hear().durable().durable_offset(), 4);
}

TEST_F(BatchServiceTest, SaysWhereAChunkShouldHaveBegun) {
  Upload upload(stub_.get());
  upload.SendHeader(Header("gap"));
  upload.Hear();
  upload.SendChunk(0, "key\n");
  upload.Hear();
  upload.SendChunk(7, "k\n");
  const absl::Status wrong = upload.End();
  EXPECT_TRUE(absl::IsOutOfRange(wrong)) << wrong;
  ASSERT_TRUE(rpc::Reason(wrong).has_value());
  EXPECT_EQ(rpc::Reason(wrong)->reason, "WRONG_OFFSET");
  EXPECT_EQ(rpc::Reason(wrong)->metadata.at("expected_offset"), "4");
}

TEST_F(BatchServiceTest, DropsAnUploadThatDoesNotHaveItsHash) {
  Upload upload(stub_.get());
  upload.SendHeader(Header("damaged"));
  upload.Hear();
  upload.SendChunk(0, "key\nk1\n");
  upload.SendSeal(7, base::Fingerprint("key\nk2\n"));
  EXPECT_TRUE(absl::IsDataLoss(upload.End()));
  EXPECT_EQ(ledger_->Get(1)->state, ledger::BatchState::kCancelled);
  const auto anew = Submit("damaged", "key\nk2\n");
  ASSERT_TRUE(anew.ok()) << anew.status();
  EXPECT_EQ(anew->batch(), 2);
}

TEST_F(BatchServiceTest, NamesTheFieldOfARequestThatIsWrong) {
  const auto refuse = [this](const auto& send) {
    Upload upload(stub_.get());
    send(upload);
    const absl::Status refused = upload.End();
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
    const auto violations = rpc::Violations(refused);
    if (violations.empty()) return std::string();
    EXPECT_EQ(refused.message(),
              absl::StrCat(violations[0].field, ": ", violations[0].description));
    return violations[0].field;
  };
  EXPECT_EQ(refuse([](Upload& upload) { upload.SendChunk(0, "x"); }), "header");
  EXPECT_EQ(refuse([](Upload& upload) { upload.SendHeader(Header("")); }), "header.request_id");
  EXPECT_EQ(refuse([](Upload& upload) { upload.SendHeader(Header(std::string(513, 'x'))); }),
            "header.request_id");
  EXPECT_EQ(refuse([](Upload& upload) {
              upload.SendHeader(Header("a"));
              upload.SendHeader(Header("a"));
            }),
            "header");
  EXPECT_EQ(refuse([](Upload& upload) {
              upload.SendHeader(Header("b"));
              upload.SendChunk(0, std::string((1 << 20) + 1, 'x'));
            }),
            "chunk.data");
  EXPECT_EQ(refuse([](Upload& upload) {
              upload.SendHeader(Header("empty"));
              upload.SendChunk(0, "");
            }),
            "chunk.data");
  for (const size_t bytes : {0, 15, 17}) {
    EXPECT_EQ(refuse([bytes](Upload& upload) {
                upload.SendHeader(Header("sealed"));
                v1::SubmitRequest request;
                request.mutable_seal()->set_content_hash(std::string(bytes, 'x'));
                upload.stream->Write(request);
              }),
              "seal.content_hash");
  }
  EXPECT_EQ(refuse([](Upload& upload) {
              upload.SendHeader(Header("c"));
              upload.stream->Write(v1::SubmitRequest());
            }),
            "step");
  const auto refuse_trace = [&](const std::string& parent, const std::string& state) {
    return refuse([&](Upload& upload) {
      v1::SubmitHeader header = Header("d");
      header.set_traceparent(parent);
      header.set_tracestate(state);
      upload.SendHeader(header);
    });
  };
  EXPECT_EQ(refuse_trace("on", ""), "header.traceparent");
  EXPECT_EQ(refuse_trace("", "a=b"), "header.tracestate");
  EXPECT_EQ(refuse_trace(kTraceparent, std::string(513, 'x')), "header.tracestate");
  EXPECT_EQ(refuse_trace(kTraceparent, "a=\n"), "header.tracestate");
}

}  // namespace
}  // namespace muster
