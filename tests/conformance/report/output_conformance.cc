// SPDX-License-Identifier: Apache-2.0

// Output records count exactly once with their item.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "tests/conformance/report/report_conformance.h"

namespace muster::report::conformance {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Type = base::OutputColumn::Type;

void LinkOutputTests() {}

namespace {

BatchShape WithOutputs(BatchShape shape) {
  shape.job_revision = "revision-2";
  shape.outputs = {{"note", Type::kText, 0}, {"total", Type::kDecimal, 2}};
  return shape;
}

CountedItem Giving(CountedItem item, std::vector<std::vector<std::string>> records) {
  item.batch = 8;
  item.outputs.emplace();
  for (std::vector<std::string>& fields : records) {
    item.outputs->push_back({static_cast<int64_t>(item.index), std::move(fields)});
  }
  return item;
}

// "1: a|1.50", as many as one call reads.
std::vector<std::string> Outputs(ReportReader& reader, OutputPosition from = {},
                                 size_t max_bytes = size_t{1} << 20) {
  std::vector<std::string> lines;
  const auto next = reader.ReadOutputs(8, from, max_bytes, [&](const base::OutputRecord& record) {
    lines.push_back(absl::StrCat(record.line, ": ", absl::StrJoin(record.fields, "|")));
  });
  EXPECT_TRUE(next.ok()) << next.status();
  return lines;
}

}  // namespace

TEST_P(ReportConformanceTest, KeepsRecordsInTheOrderOfItems) {
  ASSERT_TRUE(store()->RegisterBatch(WithOutputs(Shop(8))).ok());
  Commit({Giving(Item(2, "ann", "1", 1), {{"c", "3"}}), Giving(Item(0, "ann", "1", 1), {})});
  Commit({Giving(Item(1, "ann", "1", 1), {{"a", "1.50"}, {"b", ""}})});
  Restart();
  EXPECT_THAT(Outputs(*Read()), ElementsAre("1: a|1.50", "1: b|", "2: c|3"));
  EXPECT_EQ(*Read()->OutputColumns(8), WithOutputs(Shop(8)).outputs);
  EXPECT_THAT(*Read()->OutputColumns(kBatch), IsEmpty());
}

TEST_P(ReportConformanceTest, KeepsTheRecordsOfAnItemOnceHoweverOftenItIsDelivered) {
  ASSERT_TRUE(store()->RegisterBatch(WithOutputs(Shop(8))).ok());
  Commit({Giving(Item(0, "ann", "1", 1), {{"a", "1"}})});
  EXPECT_THAT(Commit({Giving(Item(0, "ann", "1", 1), {{"a", "1"}})}),
              ElementsAre(Verdict::kDuplicate));
  EXPECT_THAT(Commit({Giving(Item(0, "ann", "2", 1), {{"b", "2"}})}),
              ElementsAre(Verdict::kConflict));
  EXPECT_THAT(Outputs(*Read()), ElementsAre("0: a|1"));
}

TEST_P(ReportConformanceTest, KeepsTheRecordsOfAnItemThatWasRedriven) {
  ASSERT_TRUE(store()->RegisterBatch(WithOutputs(Shop(8))).ok());
  CountedItem dead = Dead(0, "it died");
  dead.batch = 8;
  Commit({dead});
  EXPECT_THAT(Outputs(*Read()), IsEmpty());
  ASSERT_TRUE(store()->ReopenDeadLettered(8, {0}).ok());
  Commit({Giving(Item(0, "ann", "1", 1), {{"a", "1"}})});
  EXPECT_THAT(Outputs(*Read()), ElementsAre("0: a|1"));
}

TEST_P(ReportConformanceTest, GivesUpAnItemWhoseRecordsDoNotFitItsJob) {
  ASSERT_TRUE(store()->RegisterBatch(WithOutputs(Shop(8))).ok());
  CountedItem silent = Item(1, "ann", "1", 1);
  silent.batch = 8;
  CountedItem talkative = Giving(Item(2, "ann", "1", 1), {{"a", "1"}});
  talkative.batch = kBatch;
  EXPECT_THAT(Commit({Giving(Item(0, "ann", "1", 1), {{"a"}}), silent, talkative}),
              ElementsAre(Verdict::kRefused, Verdict::kRefused, Verdict::kRefused));
  EXPECT_THAT(Outputs(*Read()), IsEmpty());
}

TEST_P(ReportConformanceTest, ReadsRecordsPageByPage) {
  ASSERT_TRUE(store()->RegisterBatch(WithOutputs(Shop(8))).ok());
  const std::string large(60'000, 'x');
  std::vector<std::vector<std::string>> records(10, {large, ""});
  Commit({Giving(Item(0, "ann", "1", 1), records), Giving(Item(1, "ann", "1", 1), records)});
  const auto reader = Read();
  size_t read = 0;
  int pages = 0;
  std::optional<OutputPosition> at = OutputPosition{};
  while (at.has_value()) {
    size_t bytes = 0;
    const auto next = reader->ReadOutputs(8, *at, 100'000, [&](const base::OutputRecord& record) {
      bytes += record.fields[0].size();
      ++read;
    });
    ASSERT_TRUE(next.ok()) << next.status();
    EXPECT_LE(bytes, 300'000u);
    at = *next;
    ++pages;
  }
  EXPECT_EQ(read, 20u);
  EXPECT_GE(pages, 5);
}

TEST_P(ReportConformanceTest, ForgetsTheRecordsOfABatch) {
  ASSERT_TRUE(store()->RegisterBatch(WithOutputs(Shop(8))).ok());
  Commit(
      {Giving(Item(0, "ann", "1", 1), {{"a", "1"}}), Giving(Item(1, "ann", "1", 1), {{"b", ""}})});
  absl::StatusOr<bool> done = false;
  for (int calls = 0; done.ok() && !*done && calls < 100; ++calls)
    done = store()->ForgetBatch(8, 1);
  ASSERT_TRUE(done.ok() && *done) << done.status();
  EXPECT_THAT(Outputs(*Read()), IsEmpty());
}

TEST_P(ReportConformanceTest, RefusesOtherOutputsOfTheSameRevision) {
  ASSERT_TRUE(store()->RegisterBatch(WithOutputs(Shop(8))).ok());
  BatchShape other = WithOutputs(Shop(9));
  other.outputs.pop_back();
  EXPECT_TRUE(absl::IsFailedPrecondition(store()->RegisterBatch(other).status()));
  other.outputs = {{"a", Type::kText, 0}, {"A", Type::kText, 0}};
  EXPECT_TRUE(absl::IsInvalidArgument(store()->RegisterBatch(other).status()));
}

}  // namespace muster::report::conformance
