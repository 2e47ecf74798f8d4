// SPDX-License-Identifier: Apache-2.0

// The conformance suite of the ReportStore seam. It uses a store only through report_store.h.
//
// In a store's test, within this namespace:
//
//   class MyHarness final : public StoreHarness { … };
//   INSTANTIATE_TEST_SUITE_P(MyStore, ReportConformanceTest,
//                            ::testing::Values([]() -> std::unique_ptr<StoreHarness> {
//                              return std::make_unique<MyHarness>();
//                            }));
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "muster/report/report_store.h"
#include "tests/fakes/base/fake_clock.h"

namespace muster::report::conformance {

// Makes the store under test. One harness per test; it owns the store and its data.
class StoreHarness {
 public:
  // Also makes the linker keep the files of the suite, to which no other code refers.
  StoreHarness();
  virtual ~StoreHarness() = default;

  // Opens a new, empty store on `clock`, which outlives the harness.
  virtual ReportStore* Start(base::Clock* clock) = 0;
  // Closes the store and opens it again on the same data. The store that Start or Restart returned
  // before is invalid afterwards.
  virtual ReportStore* Restart() = 0;
};

using StoreFactory = std::function<std::unique_ptr<StoreHarness>()>;

void LinkCountingTests();
void LinkOutputTests();
void LinkOverflowTests();
void LinkReceiptTests();
void LinkRetryTests();

// Helpers for batch 7 of job "shop": group "by_customer" (customer → revenue with 2 decimals,
// units) and group "by_day" (day, shop → units). A helper that cannot do its work fails the test.
class ReportConformanceTest : public ::testing::TestWithParam<StoreFactory> {
 protected:
  static constexpr uint64_t kBatch = 7;

  ReportConformanceTest();

  ReportStore* store() { return store_; }
  void Restart() { store_ = harness_->Restart(); }
  void Advance(absl::Duration by) { clock_.Advance(by); }
  absl::Time Now() const { return clock_.Now(); }

  static BatchShape Shop(uint64_t batch = kBatch);
  // Returns an item of 10 transactions, one of them rejected at line 10 × index + 1; its rows add
  // `revenue` and `units` to the customer, and `units` to the day.
  static CountedItem Item(uint64_t index, const std::string& customer, const std::string& revenue,
                          int64_t units);
  static CountedItem Dead(uint64_t index, const std::string& cause);
  static BatchFacts Facts(uint64_t items);

  // Commits as the owner with `epoch`, and returns the outcome of each item.
  std::vector<Verdict> Commit(std::vector<CountedItem> items, uint64_t epoch = 1);
  CommitSummary CommitAll(std::vector<CountedItem> items);
  Receipt Complete(const BatchFacts& facts);
  // Completes batch 7 with items 0, 1 and 2, which reject their lines 1, 11 and 21.
  Receipt CompleteWithRejections();
  // Items 0 and 2 are given up, with ten transactions each; item 1 has rejected its line 11.
  Receipt CompleteWithDead();

  Progress GetProgress(uint64_t batch = kBatch);
  // One line a row: "EIRE: 12.50 3".
  std::vector<std::string> Rows(const std::string& group, uint64_t batch = kBatch);
  std::vector<uint64_t> Uncounted(uint64_t item_count, uint64_t from = 0, size_t max = 1000);
  // Line and reason: "11 no price".
  std::vector<std::string> Rejections(int64_t offset = 0, int64_t max = 1000);
  std::vector<ItemRow> Items();
  std::unique_ptr<ReportReader> Read();

 private:
  base::FakeClock clock_;
  const std::unique_ptr<StoreHarness> harness_;
  ReportStore* store_;  // the harness's
};

}  // namespace muster::report::conformance
