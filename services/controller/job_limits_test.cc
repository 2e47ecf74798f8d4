// SPDX-License-Identifier: Apache-2.0

// What a job file may have, a batch of the job can do: the report takes it, counts it and issues a
// receipt. One beyond each limit is refused when the job file is read.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/output_record.h"
#include "muster/base/report_limits.h"
#include "muster/job/job_file.h"
#include "muster/os/temp_dir.h"
#include "muster/report/report_proto.h"
#include "muster/report/sqlite/sqlite_report_store.h"
#include "tests/fakes/base/fake_clock.h"

namespace muster::controller {
namespace {

using ::testing::HasSubstr;

// A job with so many groups, keys and measures of each, and output columns.
std::string JobFile(size_t groups, size_t keys, size_t measures, size_t outputs,
                    size_t name_bytes = 8) {
  const auto name = [&](absl::string_view prefix, size_t i) {
    std::string text = absl::StrCat(prefix, i);
    text.resize(std::max(text.size(), name_bytes), 'x');
    return text;
  };
  std::string file = "name: wide\ninput: {format: lines}\nhandler: {linked: retail}\ngroups:\n";
  for (size_t g = 0; g < groups; ++g) {
    absl::StrAppend(&file, "  - name: ", name("g", g), "\n    keys: [");
    for (size_t i = 0; i < keys; ++i) absl::StrAppend(&file, i > 0 ? ", " : "", name("k", i));
    absl::StrAppend(&file, "]\n    measures: {");
    for (size_t i = 0; i < measures; ++i) {
      absl::StrAppend(&file, i > 0 ? ", " : "", name("m", i), ": int");
    }
    absl::StrAppend(&file, "}\n");
  }
  if (outputs == 0) return file;
  absl::StrAppend(&file, "outputs:\n  columns: {");
  for (size_t i = 0; i < outputs; ++i) {
    absl::StrAppend(&file, i > 0 ? ", " : "", name("c", i), ": text");
  }
  return absl::StrCat(file, "}\n");
}

std::string Refusal(const std::string& file) {
  return std::string(job::ParseJob(file, "wide.yaml").status().message());
}

// An item that has a row in each group, and a record.
report::CountedItem ItemOf(const report::BatchShape& shape) {
  report::CountedItem item;
  item.batch = shape.batch;
  item.transactions = item.aggregated = 1;
  for (const report::GroupShape& group : shape.groups) {
    report::PartialRow row;
    row.keys = group.keys;
    row.measures.assign(group.measures.size(), *base::Decimal::TryParse("1"));
    item.groups.push_back({group.name, {row}});
  }
  if (!shape.outputs.empty()) {
    item.outputs = {{1, std::vector<std::string>(shape.outputs.size(), "x")}};
  }
  return item;
}

// Why the batch of the job cannot be counted; empty: it has its receipt.
std::string Counted(const std::string& file) {
  const absl::StatusOr<job::JobDefinition> job = job::ParseJob(file, "wide.yaml");
  if (!job.ok()) return job.status().ToString();
  const os::TempDir dir;
  base::FakeClock clock;
  const auto store = report::sqlite::OpenSqliteReport(dir / "report.db", {.clock = &clock});
  if (!store.ok()) return store.status().ToString();
  report::BatchShape shape = report::ShapeOf(1, job->schema());
  const auto registered = (*store)->RegisterBatch(shape);
  if (!registered.ok()) return registered.status().ToString();
  const auto summary = (*store)->Commit({"out", (*store)->epoch(), {ItemOf(shape)}});
  if (!summary.ok()) return summary.status().ToString();
  if (summary->verdicts[0].verdict != report::Verdict::kCounted) return summary->verdicts[0].why;
  report::BatchFacts facts;
  facts.batch = 1;
  facts.job = shape.job;
  facts.job_revision = shape.job_revision;
  facts.items = facts.transactions = 1;
  return (*store)->Complete(facts).ok() ? "" : "no receipt";
}

TEST(JobLimitsTest, WhatAJobFileMayHaveABatchCanDo) {
  EXPECT_EQ(Counted(JobFile(base::kMaxGroups, 1, 1, 0)), "");
  EXPECT_EQ(Counted(JobFile(1, 1, base::kMaxGroupColumns - 1, 0)), "");
  EXPECT_EQ(Counted(JobFile(1, 16, base::kMaxGroupColumns - 16, 0)), "");
  EXPECT_EQ(Counted(JobFile(1, 1, 1, base::kMaxOutputColumns)), "");
  EXPECT_EQ(Counted(JobFile(base::kMaxGroups, 16, base::kMaxGroupColumns - 16,
                            base::kMaxOutputColumns, /*name_bytes=*/40)),
            "");
}

TEST(JobLimitsTest, OneBeyondIsRefusedWithItsPlaceAndItsBound) {
  EXPECT_THAT(Refusal(JobFile(base::kMaxGroups + 1, 1, 1, 0)), HasSubstr("1 to 64 entries"));
  EXPECT_THAT(Refusal(JobFile(1, 1, base::kMaxGroupColumns, 0)), HasSubstr("1 to 63 entries"));
  EXPECT_THAT(Refusal(JobFile(1, 16, base::kMaxGroupColumns - 15, 0)),
              HasSubstr("at most 64 keys and measures together, not 65"));
  EXPECT_THAT(Refusal(JobFile(1, 17, 1, 0)), HasSubstr("1 to 16 entries"));
  EXPECT_THAT(Refusal(JobFile(1, 1, 1, base::kMaxOutputColumns + 1)), HasSubstr("1 to 64 entries"));
  EXPECT_THAT(Refusal(JobFile(1, 1, 1, 0, /*name_bytes=*/41)), HasSubstr("40"));
}

}  // namespace
}  // namespace muster::controller
