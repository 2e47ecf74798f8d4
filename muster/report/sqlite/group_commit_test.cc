// SPDX-License-Identifier: Apache-2.0
#include "muster/report/sqlite/group_commit.h"

#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/mutex.h"
#include "muster/os/temp_dir.h"
#include "muster/report/sqlite/connection.h"
#include "muster/report/sqlite/sqlite_report_store.h"

namespace muster::report::sqlite {
namespace {

using ::testing::ElementsAre;

// Holds the first transaction back until all others wait for the next one.
class GroupCommitTest : public ::testing::Test {
 protected:
  void RunBeside(size_t others, const std::function<absl::Status(size_t)>& change) {
    std::vector<std::thread> threads;
    threads.emplace_back([&] { results_[0] = changes_.Run([&] { return change(0); }); });
    {
      base::MutexLock lock(&mu_);
      while (groups_.empty()) changed_.Wait(&mu_);
    }
    for (size_t i = 1; i <= others; ++i) {
      threads.emplace_back([&, i] { results_[i] = changes_.Run([&, i] { return change(i); }); });
    }
    while (changes_.waiting() < others) std::this_thread::yield();
    {
      base::MutexLock lock(&mu_);
      first_is_held_ = false;
      changed_.NotifyAll();
    }
    for (std::thread& thread : threads) thread.join();
  }

  base::Mutex mu_;
  base::CondVar changed_;
  bool first_is_held_ ABSL_GUARDED_BY(mu_) = true;
  std::vector<size_t> groups_ ABSL_GUARDED_BY(mu_);  // how many changes each had
  std::vector<size_t> groups() {
    base::MutexLock lock(&mu_);
    return groups_;
  }

  std::vector<absl::Status> results_ = std::vector<absl::Status>(200);
  GroupCommit changes_{[this](absl::Span<GroupCommit::Member* const> group) {
    base::MutexLock lock(&mu_);
    groups_.push_back(group.size());
    changed_.NotifyAll();
    while (first_is_held_) changed_.Wait(&mu_);
    for (GroupCommit::Member* const member : group) member->result = member->change();
  }};
};

TEST_F(GroupCommitTest, SharesATransactionAmongChangesThatComeMeanwhile) {
  RunBeside(5, [](size_t i) { return i == 3 ? absl::NotFoundError("three") : absl::OkStatus(); });
  EXPECT_THAT(groups(), ElementsAre(1, 5));
  for (size_t i = 0; i <= 5; ++i) EXPECT_EQ(results_[i].ok(), i != 3) << results_[i];
}

TEST_F(GroupCommitTest, BoundsATransaction) {
  RunBeside(100, [](size_t) { return absl::OkStatus(); });
  EXPECT_THAT(groups(), ElementsAre(1, 64, 36));
}

report::BatchShape Shape(uint64_t batch, const char* revision) {
  report::BatchShape shape;
  shape.batch = batch;
  shape.job = "retail";
  shape.job_revision = revision;
  shape.groups = {{"by_customer", {"customer"}, {{"revenue", false, 3}}}};
  return shape;
}

// Threads wait for the lock of an SQL shell, and then share a transaction.
TEST(GroupedReportTest, RefusesOneOfTheBatchesThatBeginTogetherAndTakesTheOthers) {
  constexpr uint64_t kBeginTogether = 8;
  const os::TempDir dir;
  const auto store = OpenSqliteReport(dir / "report.db", {.busy_wait = absl::Minutes(1)});
  ASSERT_TRUE(store.ok()) << store.status();
  ASSERT_TRUE((*store)->RegisterBatch(Shape(1, "r1")).ok());
  const auto shell = Connection::Open(dir / "report.db", OpenMode::kWrite);
  ASSERT_TRUE((*shell)->Execute("BEGIN IMMEDIATE").ok());
  std::vector<absl::Status> results(kBeginTogether + 1);
  std::vector<std::thread> threads;
  for (uint64_t batch = 1; batch <= kBeginTogether; ++batch) {
    threads.emplace_back([&, batch] {
      results[batch] = (*store)->RegisterBatch(Shape(batch, batch == 1 ? "r2" : "r1")).status();
    });
  }
  ASSERT_TRUE((*shell)->Execute("ROLLBACK").ok());
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(absl::IsFailedPrecondition(results[1])) << results[1];
  for (uint64_t batch = 2; batch <= kBeginTogether; ++batch) {
    EXPECT_TRUE(results[batch].ok()) << results[batch];
    EXPECT_TRUE((*(*store)->Read())->GetProgress(batch).ok()) << batch;
  }
}

}  // namespace
}  // namespace muster::report::sqlite
