// SPDX-License-Identifier: Apache-2.0
#include "services/controller/report_ownership.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/os/temp_dir.h"
#include "muster/report/sqlite/sqlite_report_store.h"
#include "services/controller/controller_seat.h"
#include "services/controller/switched_report.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/sync/memory_sync_store.h"

namespace muster::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A controller that counts nothing, over a report file.
class TestController {
 public:
  TestController(const std::string& instance, std::string path, sync::OptimisticSyncStore* sync,
                 base::Clock* clock, const std::string& replaced = "",
                 std::vector<std::string> predecessors = {},
                 const std::function<void()>& before_begin = {})
      : path_(std::move(path)) {
    OwnedCounting counting;
    counting.identity = [this] { return report::sqlite::ReadIdentity(path_); };
    counting.begin = [this, before_begin](const report::ReportOwner& owner) -> absl::Status {
      if (before_begin) before_begin();
      auto store = report::sqlite::OpenSqliteReport(path_, {.owner = owner});
      if (!store.ok()) return store.status();
      report_.Open(*std::move(store));
      return absl::OkStatus();
    };
    counting.end = [this] { report_.RefuseChanges(); };
    auto ownership = ReportOwnership::Create({.account = "local",
                                              .instance = instance,
                                              .replaced_report = replaced,
                                              .predecessors = std::move(predecessors)},
                                             sync, std::move(counting), clock);
    status_ = ownership.status();
    if (!status_.ok()) return;
    ownership_ = *std::move(ownership);
    status_ = ownership_->Join();
  }

  const absl::Status& status() const { return status_; }
  ReportOwnership* operator->() { return ownership_.get(); }
  SwitchedReport& report() { return report_; }

 private:
  const std::string path_;
  SwitchedReport report_;
  absl::Status status_;
  std::unique_ptr<ReportOwnership> ownership_;
};

class ReportOwnershipTest : public ::testing::Test {
 protected:
  // Time goes on until it counts.
  void AwaitCounting(TestController* controller) {
    while (!(*controller)->AwaitCounting(absl::ZeroDuration()).ok()) {
      clock_.Advance(absl::Milliseconds(500));
      absl::SleepFor(absl::Milliseconds(1));
    }
  }
  // The first claim needs no time to pass.
  void AwaitFirst(TestController* controller) {
    while (!(*controller)->AwaitCounting(absl::ZeroDuration()).ok()) {
      absl::SleepFor(absl::Milliseconds(1));
    }
  }
  static absl::Status Change(TestController* controller) {
    return controller->report().CancelBatch(7, {});
  }

  const os::TempDir dir_;
  const std::string path_ = dir_ / "report.db";
  sync::testing::MemorySyncStore sync_;
  base::FakeClock clock_;
};

TEST_F(ReportOwnershipTest, AControllerThatIsAloneCountsAtOnce) {
  TestController one("c-1", path_, &sync_, &clock_);
  AwaitFirst(&one);
  EXPECT_EQ(one->StandbyFor(), std::nullopt);
  EXPECT_EQ(one.report().epoch(), 1u);
  EXPECT_TRUE(Change(&one).ok());
}

TEST_F(ReportOwnershipTest, ASecondOneIsStandbyAndCountsWhenTheFirstStops) {
  TestController one("c-1", path_, &sync_, &clock_);
  AwaitFirst(&one);
  TestController two("c-2", path_, &sync_, &clock_);
  while (two->StandbyFor() != "c-1") absl::SleepFor(absl::Milliseconds(1));
  EXPECT_THAT(two->AwaitCounting(absl::ZeroDuration()).ToString(),
              HasSubstr("standby: c-1 counts the results of this mesh"));
  EXPECT_TRUE(absl::IsUnavailable(Change(&two)));
  one->Stop();
  AwaitCounting(&two);
  EXPECT_EQ(two.report().epoch(), 2u);
  EXPECT_TRUE(Change(&two).ok());
  EXPECT_TRUE(absl::IsUnavailable(Change(&one)));
}

// It cannot tell whether another one counts.
TEST_F(ReportOwnershipTest, ARefusalBlamesNotAnotherControllerAlone) {
  TestController stopped("c-1", path_, &sync_, &clock_);
  AwaitFirst(&stopped);
  stopped->Stop();
  EXPECT_THAT(
      Change(&stopped).message(),
      HasSubstr("another one does, or NATS does not answer it, or stores nothing: a nats-server "
                "whose disk was full does so until it is restarted"));
}

TEST_F(ReportOwnershipTest, TheNextProcessTakesOverFromADeadOneAtOnce) {
  TestController dead("c-1", path_, &sync_, &clock_);
  AwaitFirst(&dead);
  TestController next("c-2", path_, &sync_, &clock_, "", {"c-1"});
  AwaitFirst(&next);
  EXPECT_EQ(next.report().epoch(), 2u);
  EXPECT_TRUE(absl::IsFailedPrecondition(Change(&dead))) << "it lives after all, and is fenced";
}

TEST_F(ReportOwnershipTest, RefusesAnotherReportUnlessItIsToldToReplaceTheOne) {
  {
    TestController one("c-1", path_, &sync_, &clock_);
    AwaitFirst(&one);
    one->Stop();
  }
  const std::string id = report::sqlite::ReadIdentity(path_)->report;
  const std::string other = dir_ / "other.db";
  const absl::Status refused = TestController("c-2", other, &sync_, &clock_).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(
      std::string(refused.message()),
      HasSubstr("counts into report " + id + ", of c-1, and this controller has a new one"));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("--replace-report " + id));
  {
    TestController wrong("c-2", other, &sync_, &clock_, "0123456789abcdef");
    EXPECT_FALSE(wrong.status().ok());
    TestController two("c-2", other, &sync_, &clock_, id);
    AwaitFirst(&two);
    two->Stop();
  }
  EXPECT_FALSE(TestController("c-1", path_, &sync_, &clock_).status().ok());
  TestController again("c-3", other, &sync_, &clock_, id);
  AwaitFirst(&again);
}

// Two meshes on one NATS server, as by mistake: neither controller sees a report at first.
TEST_F(ReportOwnershipTest, RefusesAnotherReportAlsoOfAStandbyThatBeganBeforeAnyWasCountedInto) {
  const std::string other = dir_ / "other.db";
  std::unique_ptr<TestController> two;
  // The second one joins between the first one's look at the records and its first write there.
  TestController one("c-1", path_, &sync_, &clock_, "", {}, [&] {
    if (two == nullptr) two = std::make_unique<TestController>("c-2", other, &sync_, &clock_);
  });
  AwaitFirst(&one);
  ASSERT_TRUE(two->status().ok());
  const absl::Status refused = (*two)->AwaitCounting(absl::ZeroDuration());
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(refused.ToString(), HasSubstr("of c-1, and this controller has a new one"));
}

TEST_F(ReportOwnershipTest, GoesOnAboveTheEpochOfTheReportWhereTheStoreHasLostItsRecords) {
  for (const char* instance : {"c-1", "c-2"}) {
    TestController one(instance, path_, &sync_, &clock_);
    AwaitFirst(&one);
    one->Stop();
  }
  sync_.Clear();
  TestController next("c-3", path_, &sync_, &clock_);
  AwaitFirst(&next);
  EXPECT_EQ(next.report().epoch(), 3u);
}

// It would hold the ownership, with nobody to count or to give it up.
TEST_F(ReportOwnershipTest, JoinsNobodyOnceItIsStopped) {
  OwnedCounting counting;
  counting.identity = [this] { return report::sqlite::ReadIdentity(path_); };
  OwnershipOptions options;
  options.account = "local";
  options.instance = "c-1";
  const auto ownership =
      ReportOwnership::Create(options, &sync_, std::move(counting), &clock_).value();
  ownership->Stop();
  EXPECT_TRUE(absl::IsCancelled(ownership->Join()));
  EXPECT_EQ(sync_.writes_tried(), 0);
}

TEST(ControllerSeatTest, TellsTheNextProcessWhichOnesAreDead) {
  const os::TempDir dir;
  auto one = ControllerSeat::Take(dir.path(), "c-1").value();
  EXPECT_THAT(one->predecessors(), IsEmpty());
  EXPECT_THAT(ControllerSeat::Take(dir.path(), "c-2").value()->predecessors(), IsEmpty())
      << "c-1 lives";
  one.reset();
  auto three = ControllerSeat::Take(dir.path(), "c-3").value();
  EXPECT_THAT(three->predecessors(), ElementsAre("c-1"));
  three.reset();
  auto four = ControllerSeat::Take(dir.path(), "c-4").value();
  EXPECT_THAT(four->predecessors(), ElementsAre("c-1", "c-3")) << "c-3 had not begun";
  four->Keep();
  four.reset();
  EXPECT_THAT(ControllerSeat::Take(dir.path(), "c-5").value()->predecessors(), ElementsAre("c-4"));
}

}  // namespace
}  // namespace muster::controller
