// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/batch/batch_number_recovery.h"

#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/civil_time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/backend/backend.h"
#include "muster/os/temp_dir.h"
#include "muster/report/report_store.h"
#include "tests/fakes/base/fake_clock.h"

namespace muster::initiator::batch {
namespace {

using ::testing::Optional;

// A report that is unavailable when the test says so.
class MoodyDesk final : public report::ReportClient {
 public:
  absl::StatusOr<uint64_t> HighestBatch() override { return highest; }

  absl::StatusOr<report::Progress> RegisterBatch(const report::BatchShape&) override {
    return absl::UnimplementedError("not asked");
  }
  absl::StatusOr<report::Progress> GetProgress(uint64_t) override {
    return absl::UnimplementedError("not asked");
  }
  absl::StatusOr<std::vector<uint64_t>> UncountedItems(uint64_t, uint64_t, uint64_t,
                                                       size_t) override {
    return absl::UnimplementedError("not asked");
  }
  absl::Status CheckCompletion(uint64_t) override { return absl::UnimplementedError("not asked"); }
  absl::StatusOr<report::StoredReceipt> GetReceipt(uint64_t) override {
    return absl::UnimplementedError("not asked");
  }
  absl::StatusOr<report::Tally> GetTally(uint64_t) override {
    return absl::UnimplementedError("not asked");
  }
  absl::Status ReopenDeadLettered(uint64_t, absl::Span<const uint64_t>) override {
    return absl::UnimplementedError("not asked");
  }

  absl::StatusOr<uint64_t> highest = 0;
};

class NumberStartTest : public ::testing::Test {
 protected:
  NumberStartTest() {
    const absl::Time year_2026 = absl::FromCivil(absl::CivilSecond(2026), absl::UTCTimeZone());
    clock_.Advance(year_2026 - clock_.Now());
  }

  absl::StatusOr<int64_t> First(bool lost = false, absl::Duration up = kHeartbeatWarmup) {
    return FirstBatchNumber(ledger_.get(), &report_client_, &clock_, lost, up);
  }
  void Record(uint64_t number) {
    ledger::Batch batch;
    batch.number = number;
    batch.request_id = absl::StrCat(number);
    batch.job = "shop";
    batch.created = clock_.Now();
    ASSERT_TRUE(ledger_->Create(batch).ok());
  }

  // Six years with two leap days.
  static constexpr int64_t kSecondsTo2026 = int64_t{6 * 365 + 2} * 24 * 60 * 60;

  const os::TempDir dir_;
  base::FakeClock clock_;
  const std::unique_ptr<ledger::BatchLedger> ledger_ =
      backend::OpenBatchLedger(backend::DataDirUrls(dir_.path()).ledger, backend::Mode::kReadWrite)
          .value();
  MoodyDesk report_client_;
};

TEST_F(NumberStartTest, IsOneOfANewMesh) { EXPECT_EQ(*First(), 1); }

TEST_F(NumberStartTest, IsBeyondEveryCounterOnceAnybodyKnowsOfABatch) {
  report_client_.highest = 3;  // the number of another initiator's batch
  EXPECT_EQ(*First(), kSecondsTo2026);
  report_client_.highest = 0;
  Record(2);
  EXPECT_EQ(*First(), kSecondsTo2026);
}

TEST_F(NumberStartTest, TakesAReportThatIsAwayForOneThatKnowsBatches) {
  report_client_.highest = absl::UnavailableError("no controller");
  EXPECT_EQ(*First(), kSecondsTo2026);
}

TEST_F(NumberStartTest, WaitsForAReportThatWasNotHeardOfYet) {
  report_client_.highest = absl::UnavailableError("no controller");
  const absl::Duration soon = kHeartbeatWarmup - absl::Milliseconds(1);
  EXPECT_TRUE(absl::IsUnavailable(First(false, soon).status()));
  EXPECT_EQ(*First(/*lost=*/true, soon), kSecondsTo2026);
  Record(2);
  EXPECT_EQ(*First(false, soon), kSecondsTo2026);
}

TEST_F(NumberStartTest, IsNotOneAgainForWhoHadNumbersThatNobodyElseKnows) {
  EXPECT_EQ(*First(/*lost=*/true), kSecondsTo2026);
}

TEST_F(NumberStartTest, LeavesRoomBehindACounterThatWasFasterThanTheClock) {
  report_client_.highest = 7'000'000'000;
  Record(8'000'000'000);
  EXPECT_EQ(*First(), 8'000'000'000 + kNumbersInHand);
}

TEST_F(NumberStartTest, NeverStandsStillThoughTheClockDoes) {
  clock_.Advance(absl::FromUnixSeconds(0) - clock_.Now());
  Record(5);
  EXPECT_EQ(*First(), 5 + kNumbersInHand);
}

class HighestNumberTest : public NumberStartTest {
 protected:
  absl::StatusOr<std::optional<int64_t>> Highest(absl::Duration up = kHeartbeatWarmup) {
    return HighestBatchNumber(ledger_.get(), &report_client_, up);
  }
};

TEST_F(HighestNumberTest, IsThatOfLedgerAndReport) {
  EXPECT_THAT(*Highest(), Optional(0));
  report_client_.highest = 3;
  EXPECT_THAT(*Highest(), Optional(3));
  Record(5);
  EXPECT_THAT(*Highest(), Optional(5));
}

// An initiator that began with a restored counter gave a number of the report again.
TEST_F(HighestNumberTest, WaitsForAReportThatWasNotHeardOfYet) {
  report_client_.highest = absl::UnavailableError("no controller");
  EXPECT_TRUE(absl::IsUnavailable(Highest(kHeartbeatWarmup - absl::Milliseconds(1)).status()));
}

TEST_F(HighestNumberTest, IsNotKnownWhileTheReportIsAway) {
  report_client_.highest = absl::UnavailableError("no controller");
  Record(5);
  EXPECT_EQ(*Highest(), std::nullopt);
}

}  // namespace
}  // namespace muster::initiator::batch
