// SPDX-License-Identifier: Apache-2.0

// An occurrence is submitted once, also if its batch ends or the note about it is lost: two
// initiators with a runner and a ledger each, and one sync store between them.
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/backend/backend.h"
#include "muster/base/mutex.h"
#include "muster/blob/file/file_blob_store.h"
#include "muster/job/job_registry.h"
#include "muster/os/temp_dir.h"
#include "muster/report/report_client.h"
#include "muster/schedule/limits.h"
#include "muster/schedule/occurrence.h"
#include "muster/sync/unique_id_generator.h"
#include "services/initiator/retention/remover.h"
#include "services/initiator/schedule/runner.h"
#include "services/initiator/submit/request_claims.h"
#include "services/initiator/submit/submissions.h"
#include "services/initiator/submit/submit_whole.h"
#include "services/initiator/submit/uploads.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/job/job_text.h"
#include "tests/fakes/sync/memory_sync_store.h"

namespace muster::initiator::schedule {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class OnceTest : public ::testing::Test {
 protected:
  struct Initiator {
    std::unique_ptr<ledger::BatchLedger> ledger;
    std::unique_ptr<submit::Uploads> uploads;
    std::unique_ptr<submit::RequestClaims> claims;
    std::unique_ptr<submit::Submissions> submissions;
    std::unique_ptr<batch::BatchScheduler> scheduler;  // not started
    std::unique_ptr<retention::BatchRemover> remover;
    std::unique_ptr<ScheduleRunner> runner;
    // Called on the runner's thread around a submit; may be empty.
    std::function<void()> before_submit, after_submit;
  };

  OnceTest() {
    EXPECT_TRUE(jobs_.Apply(job::JobText("shop"), std::nullopt).ok());
    for (const std::string name : {"a", "b"}) Open(name);
    v1::ScheduleSpec spec;
    spec.set_name("hourly");
    spec.set_job("shop");
    spec.set_cron("0 * * * *");
    EXPECT_TRUE(schedules_.Create(spec, "amount\n1\n").ok());
    clock_.Advance(absl::Hours(1));
  }

  void Open(const std::string& name) {
    Initiator& it = initiators_[name];
    const backend::DataDirUrls urls(dir_ / name);
    it.uploads = submit::Uploads::Open(dir_ / name + "/uploads").value();
    it.ledger = backend::OpenBatchLedger(urls.ledger, backend::Mode::kReadWrite).value();
    it.claims = std::make_unique<submit::RequestClaims>(
        &records_, submit::RequestClaims::Owner{name, "initiator-" + name, name + ":7700"},
        [this](const v1::RequestClaim& claim, const submit::RequestName& request) {
          return initiators_.at(claim.directory()).submissions->FindBegun(request);
        });
    submit::Submissions::Dependencies submissions{
        &jobs_,
        it.ledger.get(),
        &numbers_,
        it.uploads.get(),
        [](const job::JobDefinition&) { return "1"; },
        [](const job::JobDefinition&) { return absl::OkStatus(); },
        &clock_,
        0,
        it.claims.get()};
    submissions.confirm = [this](const ledger::Batch& batch) {
      return muster::schedule::Confirm(&schedules_, Of(batch));
    };
    it.submissions = std::make_unique<submit::Submissions>(std::move(submissions));
    batch::EngineDependencies tools;
    tools.stores.ledger = it.ledger.get();
    tools.stores.clock = &clock_;
    it.scheduler = std::make_unique<batch::BatchScheduler>(tools, batch::SchedulerOptions());
    retention::BatchRemover::Dependencies remover{
        it.ledger.get(),
        &report_client_,
        blobs_.get(),
        it.uploads.get(),
        &clock_,
        [claims = it.claims.get()](const ledger::Batch& b) {
                                                return claims->Release(b); }};
    remover.settle_request = [this](const ledger::Batch& batch) {
      return muster::schedule::Settle(&schedules_, Of(batch), batch.number, clock_.Now());
    };
    it.remover = std::make_unique<retention::BatchRemover>(remover);
    it.runner = std::make_unique<ScheduleRunner>(
        ScheduleRunner::Dependencies{&schedules_, &clock_, name, SubmitterOf(&it)});
  }

  Submit SubmitterOf(Initiator* it) {
    return [it](const v1::SubmitHeader& header, const std::string& content) {
      if (it->before_submit) it->before_submit();
      auto batch = submit::SubmitWhole(
          {it->submissions.get(), it->scheduler.get(), it->uploads.get(), it->ledger.get()}, header,
          content);
      if (it->after_submit) it->after_submit();
      return batch;
    };
  }

  static muster::schedule::Occurrence Of(const ledger::Batch& batch) {
    return muster::schedule::OccurrenceOf(batch.request_id, batch.labels).value();
  }

  // Initiator "a" submits the occurrence, and dies when its note is lost.
  uint64_t SubmitWithoutNote() {
    Initiator& a = initiators_["a"];
    a.after_submit = [this] { records_.FailNextWrite(absl::UnavailableError("lost")); };
    a.runner->Start();
    clock_.AwaitSleepers(1);
    a.runner->Stop();
    EXPECT_TRUE(Record().has_attempt()) << "the note is lost";
    const auto open = a.ledger->ListOpen();
    EXPECT_THAT(*open, SizeIs(1));
    return open->front();
  }
  // Initiator "b" looks until it may try what "a" has begun.
  void TakeOver() {
    initiators_["b"].runner->Start();
    clock_.AwaitSleepers(1);
    for (absl::Duration passed; passed < muster::schedule::kTryTime; passed += kLookInterval) {
      clock_.Advance(kLookInterval);
      clock_.AwaitSleepers(1);
    }
  }

  void Complete(const std::string& initiator, uint64_t batch) {
    ledger::BatchLedger& ledger = *initiators_[initiator].ledger;
    ASSERT_TRUE(ledger.Seal(batch, 1).ok());
    ASSERT_TRUE(ledger.MarkComplete(batch, clock_.Now()).ok());
  }

  v1::ScheduleRecord Record() { return schedules_.Find("hourly")->record; }
  // The occurrence has this batch, and "b" has none.
  void ExpectOnly(uint64_t batch) {
    EXPECT_FALSE(Record().has_attempt());
    EXPECT_EQ(Record().submitted(), 1);
    EXPECT_EQ(Record().last_batch(), batch);
    EXPECT_THAT(*initiators_["b"].ledger->ListOpen(), IsEmpty());
  }

  const os::TempDir dir_;
  base::FakeClock clock_;
  sync::testing::MemorySyncStore records_;
  job::JobRegistry jobs_{&records_, &clock_};
  sync::UniqueIdGenerator numbers_{&records_, "numbers"};
  const std::unique_ptr<blob::BlobStore> blobs_ =
      blob::file::FileBlobStore::Open(dir_.path() + "/blobs").value();
  const std::unique_ptr<report::ReportStore> report_ =
      backend::OpenReportStore(backend::DataDirUrls(dir_.path()).report, backend::Mode::kReadWrite,
                               &clock_)
          .value();
  report::LocalReportClient report_client_{report_.get()};
  muster::schedule::ScheduleStore schedules_{&records_, blobs_.get(), &clock_};
  std::map<std::string, Initiator> initiators_;
};

TEST_F(OnceTest, AnotherInitiatorFindsTheBatchWhoseNoteIsLost) {
  const uint64_t batch = SubmitWithoutNote();
  TakeOver();
  ExpectOnly(batch);
}

TEST_F(OnceTest, ABatchThatWasCancelledBeforeItWasNotedIsNotMadeAgain) {
  const uint64_t batch = SubmitWithoutNote();
  ASSERT_TRUE(initiators_["a"].ledger->Cancel(batch, clock_.Now(), "unwanted").ok());
  TakeOver();
  ExpectOnly(batch);
}

TEST_F(OnceTest, ABatchThatWasDeletedBeforeItWasNotedIsNotMadeAgain) {
  const uint64_t batch = SubmitWithoutNote();
  Complete("a", batch);
  ASSERT_TRUE(initiators_["a"].remover->Delete(batch).ok());
  TakeOver();
  ExpectOnly(batch);
}

TEST_F(OnceTest, ABatchThatIsDeletedWhileAnotherInitiatorTriesItIsNotMadeAgain) {
  const uint64_t batch = SubmitWithoutNote();
  Complete("a", batch);
  int tries = 0;
  initiators_["b"].before_submit = [&] {
    ++tries;
    EXPECT_TRUE(initiators_["a"].remover->Delete(batch).ok());
  };
  TakeOver();
  EXPECT_EQ(tries, 1);
  ExpectOnly(batch);
}

TEST_F(OnceTest, ABatchIsNotDeletedWhileItsOccurrenceCannotBeSettled) {
  const uint64_t batch = SubmitWithoutNote();
  Complete("a", batch);
  records_.FailNextWrite(absl::UnavailableError("away"));
  EXPECT_TRUE(absl::IsUnavailable(initiators_["a"].remover->Delete(batch)));
  TakeOver();
  ExpectOnly(batch);
  EXPECT_TRUE(initiators_["a"].remover->Delete(batch).ok());
}

// A job was applied once more, with its column renamed: each occurrence made a batch that was
// cancelled at once, and the schedule counted it as submitted and named no problem.
TEST_F(OnceTest, ContentThatTheJobCannotReadAnyMoreIsARefusalAndMakesNoBatch) {
  ASSERT_TRUE(jobs_.Apply(job::JobText("shop", "price"), std::nullopt).ok());
  Initiator& a = initiators_["a"];
  a.runner->Start();
  clock_.AwaitSleepers(1);
  EXPECT_THAT(Record().problem(), HasSubstr("price"));
  EXPECT_EQ(Record().submitted(), 0);
  EXPECT_THAT(*a.ledger->ListOpen(), IsEmpty());
  ASSERT_TRUE(jobs_.Apply(job::JobText("shop"), std::nullopt).ok());
  for (absl::Duration passed; passed < absl::Minutes(1); passed += kLookInterval) {
    clock_.Advance(kLookInterval);
    clock_.AwaitSleepers(1);
  }
  EXPECT_EQ(Record().problem(), "");
  EXPECT_EQ(Record().submitted(), 1);
  EXPECT_THAT(*a.ledger->ListOpen(), SizeIs(1));
}

}  // namespace
}  // namespace muster::initiator::schedule
