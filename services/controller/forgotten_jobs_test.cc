// SPDX-License-Identifier: Apache-2.0
#include "services/controller/forgotten_jobs.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/mutex.h"
#include "muster/os/temp_dir.h"
#include "muster/report/sqlite/sqlite_report_store.h"
#include "tests/fakes/base/fake_clock.h"

namespace muster::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ForgottenJobsTest : public ::testing::Test {
 protected:
  ~ForgottenJobsTest() override { jobs_.reset(); }

  void Register(const std::string& job, uint64_t batch) {
    const report::BatchShape shape{batch, job, "r1", {{"by_day", {"day"}, {{"units", true, 0}}}}};
    ASSERT_TRUE(report_->RegisterBatch(shape).ok());
  }
  void Forget(uint64_t batch) { ASSERT_TRUE(report_->ForgetBatch(batch, 100).value()); }
  std::vector<std::string> WithoutBatches() {
    return report_->Read().value()->JobsWithoutBatches().value();
  }

  void Begin() {
    jobs_ = std::make_unique<ForgottenJobs>(
        report_.get(),
        [this](const std::string& job) -> absl::StatusOr<bool> {
          base::MutexLock lock(&mu_);
          const auto found = answers_.find(job);
          return found == answers_.end() ? false : found->second;
        },
        &clock_);
    clock_.AwaitSleepers(1);
  }
  void Answer(const std::string& job, absl::StatusOr<bool> is_there) {
    base::MutexLock lock(&mu_);
    answers_.insert_or_assign(job, std::move(is_there));
  }
  // One look, from its beginning to its end.
  void Look() {
    clock_.Advance(kForgetJobsEvery);
    clock_.AwaitSleepers(1);
  }

  const os::TempDir dir_;
  base::FakeClock clock_;
  const std::unique_ptr<report::ReportStore> report_ =
      report::sqlite::OpenSqliteReport(dir_ / "report.db").value();
  base::Mutex mu_;
  std::map<std::string, absl::StatusOr<bool>> answers_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<ForgottenJobs> jobs_;
};

TEST_F(ForgottenJobsTest, TakesOutWhatADeletedJobHasLeftOnceItsLastBatchIsGone) {
  Register("yesterday", 1);
  Register("today", 2);
  Register("counting", 3);
  Answer("today", true);
  Forget(1);
  Forget(2);
  Begin();
  Look();
  EXPECT_THAT(WithoutBatches(), ElementsAre("today")) << "people read the tables of a job";
  Forget(3);
  Answer("today", false);
  Look();
  EXPECT_THAT(WithoutBatches(), IsEmpty());
}

TEST_F(ForgottenJobsTest, KeepsWhatItDoesNotKnowOfAndLooksAgain) {
  Register("yesterday", 1);
  Forget(1);
  Answer("yesterday", absl::UnavailableError("NATS is away"));
  Begin();
  Look();
  EXPECT_THAT(WithoutBatches(), ElementsAre("yesterday"));
  Answer("yesterday", false);
  Look();
  EXPECT_THAT(WithoutBatches(), IsEmpty());
}

}  // namespace
}  // namespace muster::controller
