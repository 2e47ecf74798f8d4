// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/report/report_conformance.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"

namespace muster::report::conformance {
namespace {

base::Decimal D(const std::string& text) { return *base::Decimal::Parse(text); }

ItemFacts FactsOf(uint64_t index) {
  ItemFacts facts;
  facts.batch = 7;
  facts.index = index;
  facts.transactions = 10;
  facts.content = base::Fingerprint(absl::StrCat("slice ", index));
  facts.attempts = 1;
  facts.handler_version = "v1";
  facts.worker = "worker-1";
  return facts;
}

std::string Line(const GroupRow& row) {
  return absl::StrCat(absl::StrJoin(row.keys, "|"), ": ",
                      absl::StrJoin(row.measures, " ", [](std::string* out, const auto& measure) {
                        out->append(measure.ToString());
                      }));
}

}  // namespace

StoreHarness::StoreHarness() {
  LinkCountingTests();
  LinkOutputTests();
  LinkOverflowTests();
  LinkReceiptTests();
  LinkRetryTests();
}

ReportConformanceTest::ReportConformanceTest()
    : harness_(GetParam()()), store_(harness_->Start(&clock_)) {
  EXPECT_TRUE(store_->RegisterBatch(Shop()).ok());
}

BatchShape ReportConformanceTest::Shop(uint64_t batch) {
  const GroupShape by_customer{
      "by_customer", {"customer"}, {{"revenue", false, 2}, {"units", true, 0}}};
  const GroupShape by_day{"by_day", {"day", "shop"}, {{"units", true, 0}}};
  return {batch, "shop", "revision-1", {by_customer, by_day}};
}

CountedItem ReportConformanceTest::Item(uint64_t index, const std::string& customer,
                                        const std::string& revenue, int64_t units) {
  CountedItem item;
  static_cast<ItemFacts&>(item) = FactsOf(index);
  item.aggregated = 9;
  item.rejected = 1;
  item.result = base::Fingerprint(absl::StrCat(customer, revenue, units));
  const base::Decimal count = base::Decimal::FromInt(units);
  item.groups = {{"by_customer", {{{customer}, {D(revenue), count}}}},
                 {"by_day", {{{"monday", "a"}, {count}}}}};
  item.rejections = {{static_cast<int64_t>(10 * index + 1), "no price"}};
  return item;
}

CountedItem ReportConformanceTest::Dead(uint64_t index, const std::string& cause) {
  CountedItem item;
  static_cast<ItemFacts&>(item) = FactsOf(index);
  item.outcome = ItemOutcome::kDeadLettered;
  item.attempts = 5;
  item.cause = cause;
  return item;
}

BatchFacts ReportConformanceTest::Facts(uint64_t items) {
  BatchFacts facts;
  facts.batch = kBatch;
  facts.job = "shop";
  facts.job_revision = "revision-1";
  facts.handler_version = "v1";
  facts.items = items;
  facts.transactions = 10 * items;
  facts.created = absl::FromUnixSeconds(1'300'000'000);
  facts.ack_survives = AckSurvives::kPower;
  return facts;
}

CommitSummary ReportConformanceTest::CommitAll(std::vector<CountedItem> items) {
  absl::StatusOr<CommitSummary> summary = store_->Commit({"shop-out-0", 1, std::move(items)});
  EXPECT_TRUE(summary.ok()) << summary.status();
  return summary.ok() ? *std::move(summary) : CommitSummary();
}

std::vector<Verdict> ReportConformanceTest::Commit(std::vector<CountedItem> items, uint64_t epoch) {
  const absl::StatusOr<CommitSummary> summary =
      store_->Commit({"shop-out-0", epoch, std::move(items)});
  EXPECT_TRUE(summary.ok()) << summary.status();
  std::vector<Verdict> verdicts;
  if (!summary.ok()) return verdicts;
  for (const ItemVerdict& verdict : summary->verdicts) verdicts.push_back(verdict.verdict);
  return verdicts;
}

Receipt ReportConformanceTest::Complete(const BatchFacts& facts) {
  absl::StatusOr<Receipt> receipt = store_->Complete(facts);
  EXPECT_TRUE(receipt.ok()) << receipt.status();
  return receipt.ok() ? *std::move(receipt) : Receipt();
}

std::unique_ptr<ReportReader> ReportConformanceTest::Read() {
  absl::StatusOr<std::unique_ptr<ReportReader>> reader = store_->Read();
  EXPECT_TRUE(reader.ok()) << reader.status();
  return reader.ok() ? *std::move(reader) : nullptr;
}

Receipt ReportConformanceTest::CompleteWithRejections() {
  CommitAll({Item(0, "ann", "1.00", 1), Item(1, "ann", "1.00", 1), Item(2, "bob", "1.00", 1)});
  return Complete(Facts(3));
}

Receipt ReportConformanceTest::CompleteWithDead() {
  CommitAll({Dead(0, "no"), Item(1, "ann", "1.00", 1), Dead(2, "no")});
  return Complete(Facts(3));
}

Progress ReportConformanceTest::GetProgress(uint64_t batch) {
  absl::StatusOr<Progress> progress = Read()->GetProgress(batch);
  EXPECT_TRUE(progress.ok()) << progress.status();
  return progress.ok() ? *std::move(progress) : Progress();
}

std::vector<std::string> ReportConformanceTest::Rows(const std::string& group, uint64_t batch) {
  std::vector<std::string> lines;
  const absl::Status status =
      Read()->ForEachRow(batch, group, [&](const GroupRow& row) { lines.push_back(Line(row)); });
  EXPECT_TRUE(status.ok()) << status;
  return lines;
}

std::vector<uint64_t> ReportConformanceTest::Uncounted(uint64_t item_count, uint64_t from,
                                                       size_t max) {
  const absl::StatusOr<std::vector<uint64_t>> items =
      Read()->UncountedItems(kBatch, item_count, from, max);
  EXPECT_TRUE(items.ok()) << items.status();
  return items.ok() ? *items : std::vector<uint64_t>();
}

std::vector<std::string> ReportConformanceTest::Rejections(int64_t offset, int64_t max) {
  std::vector<std::string> lines;
  const absl::Status status =
      Read()->ForEachRejection(kBatch, offset, max, [&](const RejectionRow& rejection) {
        lines.push_back(absl::StrCat(rejection.line, " ", rejection.reason));
      });
  EXPECT_TRUE(status.ok()) << status;
  return lines;
}

std::vector<ItemRow> ReportConformanceTest::Items() {
  std::vector<ItemRow> items;
  const absl::Status status =
      Read()->ForEachItem(kBatch, [&](const ItemRow& item) { items.push_back(item); });
  EXPECT_TRUE(status.ok()) << status;
  return items;
}

}  // namespace muster::report::conformance
