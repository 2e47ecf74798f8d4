// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "muster/os/temp_dir.h"
#include "muster/report/sqlite/sqlite_report_store.h"
#include "tests/conformance/report/report_conformance.h"

namespace muster::report::conformance {
namespace {

class SqliteHarness final : public StoreHarness {
 public:
  ReportStore* Start(base::Clock* clock) override {
    clock_ = clock;
    return Open();
  }

  ReportStore* Restart() override {
    store_.reset();
    return Open();
  }

 private:
  ReportStore* Open() {
    auto store = report::sqlite::OpenSqliteReport(dir_ / "report.db", {.clock = clock_});
    EXPECT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    return store_.get();
  }

  const os::TempDir dir_;
  base::Clock* clock_ = nullptr;
  std::unique_ptr<ReportStore> store_;
};

INSTANTIATE_TEST_SUITE_P(Sqlite, ReportConformanceTest,
                         ::testing::Values([]() -> std::unique_ptr<StoreHarness> {
                           return std::make_unique<SqliteHarness>();
                         }));

}  // namespace
}  // namespace muster::report::conformance
