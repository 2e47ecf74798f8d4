// SPDX-License-Identifier: Apache-2.0

// Uploads whose clients go away: of each that is not gone on with, nothing stays.
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/backend/backend.h"
#include "muster/base/fingerprint.h"
#include "muster/job/job_registry.h"
#include "muster/os/temp_dir.h"
#include "muster/report/report_client.h"
#include "muster/rpc/status.h"
#include "muster/sync/unique_id_generator.h"
#include "services/initiator/batch/scheduler.h"
#include "services/initiator/submit/submissions.h"
#include "services/initiator/submit/uploads.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/job/job_text.h"
#include "tests/fakes/sync/memory_sync_store.h"

namespace muster::initiator::submit {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr absl::Duration kDay = absl::Hours(24);
// By then the sweep that follows has looked.
constexpr absl::Duration kSweep = absl::Seconds(61);

class UploadExpiryTest : public ::testing::Test {
 protected:
  UploadExpiryTest() {
    EXPECT_TRUE(jobs_.Apply(job::JobText("shop"), std::nullopt).ok());
    Start();
  }
  ~UploadExpiryTest() override { scheduler_->Stop(); }

  // Starts the initiator, again on the stored data if it ran before.
  void Start() {
    submissions_.reset();
    scheduler_.reset();
    uploads_ = Uploads::Open(dir_ / "uploads", &clock_).value();
    batch::EngineDependencies tools;
    tools.stores = {queues_.get(), bus_.get(), ledger_.get(), blobs_.get(), &clock_};
    tools.options.account = "acme";
    tools.content = uploads_.get();
    tools.report_client = &report_client_;
    tools.jobs = &jobs_;
    scheduler_ = std::make_unique<batch::BatchScheduler>(
        tools, batch::SchedulerOptions{.threads = 1, .uploads = limits_});
    ASSERT_TRUE(scheduler_->Start().ok());
    Submissions::Dependencies submissions;
    submissions.jobs = &jobs_;
    submissions.ledger = ledger_.get();
    submissions.numbers = &numbers_;
    submissions.uploads = uploads_.get();
    submissions.current_version = [](const job::JobDefinition&) { return "1"; };
    submissions.admit = [](const job::JobDefinition&) { return absl::OkStatus(); };
    submissions.clock = &clock_;
    submissions.check_uploads = [this] { return scheduler_->CheckUploads(); };
    submissions_ = std::make_unique<Submissions>(std::move(submissions));
    Pass(absl::ZeroDuration());
  }

  absl::StatusOr<ledger::Batch> Begin(const std::string& id) {
    v1::SubmitHeader header;
    header.set_job("shop");
    header.set_request_id(id);
    return submissions_->Begin(header);
  }

  // Adds to the upload of the request, seals it if `whole`, and goes away. Answers the batch.
  uint64_t Send(const std::string& id, const std::string& text, bool whole = false) {
    const absl::StatusOr<ledger::Batch> batch = Begin(id);
    EXPECT_TRUE(batch.ok()) << batch.status();
    scheduler_->NoteSender(batch->number);
    {
      const std::shared_ptr<Upload> upload = uploads_->Get(batch->number).value();
      const uint64_t ticket = upload->TakeOver();
      const uint64_t offset = upload->size_so_far();
      if (!text.empty()) EXPECT_TRUE(upload->Append(ticket, offset, text).ok());
      EXPECT_TRUE(upload->Sync().ok());
      if (!text.empty()) StampFile(batch->number, clock_.Now());
      if (whole) EXPECT_TRUE(upload->Seal(ticket, text.size(), base::Fingerprint(text)).ok());
      scheduler_->NoteSenderGone(batch->number);
    }
    Pass(absl::ZeroDuration());
    return batch->number;
  }

  // The file system has the time of the machine.
  void StampFile(uint64_t batch, absl::Time when) const {
    struct timespec times[2];
    times[0] = times[1] = absl::ToTimespec(when);
    const std::string file = ArrivingPath(uploads_->PathOf(batch));
    EXPECT_EQ(utimensat(AT_FDCWD, file.c_str(), times, 0), 0);
  }

  // Returns once the scheduler's only thread has nothing more to do.
  void Pass(absl::Duration time) {
    clock_.AwaitSleepers(1);
    clock_.Advance(time);
    clock_.AwaitSleepers(1);
  }
  // The same, in steps in each of which the scheduler sweeps.
  void PassInSweeps(absl::Duration time) {
    for (; time > absl::ZeroDuration(); time -= kSweep) Pass(std::min(time, kSweep));
  }

  bool IsOpen(uint64_t batch) { return ledger_->Get(batch)->state == ledger::BatchState::kOpen; }

  std::vector<std::string> Files() const {
    std::vector<std::string> names;
    for (const auto& file : std::filesystem::directory_iterator(dir_ / "uploads")) {
      names.push_back(file.path().filename());
    }
    return names;
  }

  const os::TempDir dir_;
  const backend::DataDirUrls urls_{dir_.path()};
  base::FakeClock clock_;
  retention::UploadLimits limits_;
  sync::testing::MemorySyncStore sync_;
  job::JobRegistry jobs_{&sync_, &clock_};
  sync::UniqueIdGenerator numbers_{&sync_, "numbers"};
  const std::unique_ptr<queue::QueueStore> queues_ =
      backend::OpenQueueStore(urls_.queue, backend::Mode::kReadWrite, backend::Holders::kInProcess,
                              &clock_)
          .value();
  const std::unique_ptr<ledger::BatchLedger> ledger_ =
      backend::OpenBatchLedger(urls_.ledger, backend::Mode::kReadWrite).value();
  const std::unique_ptr<blob::BlobStore> blobs_ = backend::OpenBlobStore(urls_.blobs).value();
  const std::unique_ptr<bus::TriggerBus> bus_ = backend::OpenTriggerBus("local:").value();
  const std::unique_ptr<report::ReportStore> report_ =
      backend::OpenReportStore(urls_.report, backend::Mode::kReadWrite, &clock_).value();
  report::LocalReportClient report_client_{report_.get()};
  std::unique_ptr<Uploads> uploads_;
  std::unique_ptr<batch::BatchScheduler> scheduler_;
  std::unique_ptr<Submissions> submissions_;
};

TEST_F(UploadExpiryTest, LeavesNothingOfAnUploadThatNobodyGoesOnWith) {
  const uint64_t batch = Send("march", "amount\n1\n");
  Pass(kDay - absl::Minutes(1));
  EXPECT_TRUE(IsOpen(batch));
  EXPECT_THAT(Files(), SizeIs(1));
  PassInSweeps(2 * kSweep);
  const auto expired = ledger_->Get(batch);
  ASSERT_TRUE(expired.ok()) << expired.status();
  EXPECT_EQ(expired->state, ledger::BatchState::kCancelled);
  EXPECT_THAT(expired->cancel_reason, HasSubstr("its upload has expired"));
  EXPECT_THAT(expired->cancel_reason, HasSubstr("for 1d"));
  EXPECT_THAT(Files(), IsEmpty());
  EXPECT_THAT(*scheduler_->OpenBatches(10), IsEmpty());
  EXPECT_EQ(scheduler_->Get(batch)->problem, absl::OkStatus());
  PassInSweeps(2 * kSweep);
  Pass(kDay);
  PassInSweeps(2 * kSweep);
  EXPECT_TRUE(absl::IsNotFound(ledger_->Get(batch).status())) << "its record goes a day later";
}

TEST_F(UploadExpiryTest, LetsTheSameRequestIdBeginANewBatch) {
  const uint64_t first = Send("march", "amount\n1\n");
  Pass(kDay);
  PassInSweeps(kSweep);
  const absl::StatusOr<ledger::Batch> again = Begin("march");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_NE(again->number, first);
  EXPECT_EQ(again->state, ledger::BatchState::kOpen);
}

TEST_F(UploadExpiryTest, CountsFromTheLastByteThatArrived) {
  const uint64_t batch = Send("march", "amount\n1\n");
  Pass(kDay - absl::Hours(1));
  EXPECT_EQ(Send("march", "2\n"), batch);
  Pass(kDay - absl::Hours(1));
  EXPECT_EQ(Send("march", ""), batch) << "this client has sent nothing";
  EXPECT_TRUE(IsOpen(batch));
  Pass(absl::Hours(1));
  PassInSweeps(kSweep);
  EXPECT_FALSE(IsOpen(batch));
}

TEST_F(UploadExpiryTest, SparesWhatAClientSendsOrHasSealed) {
  const uint64_t sent = Begin("march")->number;
  scheduler_->NoteSender(sent);
  const uint64_t whole = Send("april", "amount\n1\n", /*whole=*/true);
  Pass(2 * kDay);
  PassInSweeps(kSweep);
  EXPECT_TRUE(IsOpen(sent));
  EXPECT_NE(ledger_->Get(whole)->state, ledger::BatchState::kCancelled);
}

TEST_F(UploadExpiryTest, TellsASenderThatComesBackInTheSameMoment) {
  const uint64_t batch = Send("march", "amount\n1\n");
  const std::shared_ptr<Upload> upload = uploads_->Get(batch).value();
  const uint64_t ticket = upload->TakeOver();
  Pass(kDay);
  PassInSweeps(kSweep);
  const absl::Status refused = upload->Append(ticket, 9, "2\n");
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(refused.message(), HasSubstr("its upload has expired"));
  ASSERT_TRUE(rpc::Reason(refused).has_value());
  EXPECT_EQ(rpc::Reason(refused)->reason, "UPLOAD_EXPIRED");
  EXPECT_EQ(upload->Seal(ticket, 9, base::Fingerprint("amount\n1\n")), refused);
}

TEST_F(UploadExpiryTest, TakesTheTimeFromTheJobAsItWasThoughItIsGone) {
  ASSERT_TRUE(
      jobs_.Apply(absl::StrCat(job::JobText("shop"), "upload: {expires: 2h}\n"), std::nullopt)
          .ok());
  const uint64_t batch = Send("march", "amount\n1\n");
  ASSERT_TRUE(jobs_.Delete("shop").ok());
  Pass(absl::Hours(2) - absl::Minutes(1));
  EXPECT_TRUE(IsOpen(batch));
  PassInSweeps(2 * kSweep);
  EXPECT_FALSE(IsOpen(batch));
  EXPECT_THAT(Files(), IsEmpty());
}

TEST_F(UploadExpiryTest, FindsUploadsOfAnEarlierProcessByTheTimesOfTheirFiles) {
  const uint64_t batch = Send("march", "amount\n1\n");
  const uint64_t empty = Send("april", "");
  scheduler_->Stop();
  clock_.Advance(kDay - absl::Hours(1));
  // The last byte arrived two hours later than the batch began.
  StampFile(batch, clock_.Now() - kDay + absl::Hours(3));
  Start();
  Pass(absl::Hours(1));
  PassInSweeps(kSweep);
  EXPECT_FALSE(IsOpen(empty));
  EXPECT_TRUE(IsOpen(batch));
  Pass(absl::Hours(2));
  PassInSweeps(kSweep);
  EXPECT_FALSE(IsOpen(batch));
  EXPECT_THAT(Files(), IsEmpty());
}

TEST_F(UploadExpiryTest, GivesClientsTimeToComeBackToAnInitiatorThatWasAway) {
  const uint64_t batch = Send("march", "");
  scheduler_->Stop();
  clock_.Advance(10 * kDay);
  Start();
  EXPECT_TRUE(IsOpen(batch));
  EXPECT_EQ(Send("march", "amount\n1\n"), batch);
  PassInSweeps(2 * kSweep);
  EXPECT_TRUE(IsOpen(batch));
}

TEST_F(UploadExpiryTest, KeepsFurtherUploadsFromBeginningUntilThereAreFewer) {
  limits_.max_stopped = 2;
  Start();
  Send("a", "amount\n");
  Send("b", "amount\n");
  const absl::Status full = Begin("c").status();
  EXPECT_TRUE(absl::IsResourceExhausted(full)) << full;
  EXPECT_TRUE(rpc::RetryAfter(full).has_value());
  EXPECT_TRUE(Begin("a").ok()) << "it is there already";
  v1::SubmitHeader header;
  header.set_job("shop");
  header.set_request_id("short");
  const std::string text = "amount\n1\n";
  EXPECT_TRUE(submissions_->Begin(header, batch::InlineContent{text, base::Fingerprint(text)}).ok())
      << "it is no upload";
  ASSERT_TRUE(scheduler_->Cancel(1, "by hand").ok());
  Pass(kSweep);
  EXPECT_TRUE(Begin("c").ok());
}

// Each takes a day to expire, and its record another one to go.
TEST_F(UploadExpiryTest, LeavesNothingOfManyOverTime) {
  constexpr int kUploads = 100;
  for (int i = 0; i < kUploads; ++i) {
    Send(absl::StrCat("request ", i), "amount\n1\n");
    PassInSweeps(kSweep);
    Pass(absl::Hours(1));
    EXPECT_LE(scheduler_->OpenBatches(kUploads)->size(), 25u);
  }
  for (int day = 0; day < 3; ++day) {
    Pass(kDay);
    for (int i = 0; i < kUploads; ++i) Pass(absl::Seconds(1));
  }
  EXPECT_THAT(Files(), IsEmpty());
  EXPECT_THAT(*ledger_->ListOpen(), IsEmpty());
  EXPECT_THAT(ledger_->ListBelow(UINT64_MAX, 10)->batches, IsEmpty());
  EXPECT_THAT(*ledger_->ListDue(absl::InfiniteFuture(), 10), IsEmpty());
}

}  // namespace
}  // namespace muster::initiator::submit
