// SPDX-License-Identifier: Apache-2.0
#include "muster/job/job.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/string_view.h"
#include "muster/job/job_file.h"

namespace muster::job {
namespace {

constexpr char kJob[] =
    "name: bills\n"
    "input: {format: csv, columns: {quantity: Quantity, price: Price}}\n"
    "handler: {linked: bill}\n"
    "groups: [{name: total, keys: [day], measures: {revenue: decimal(2), units: int}}]\n";

std::string RevisionOf(absl::string_view text) { return ParseJob(text, "job.yaml")->revision; }

TEST(RevisionTest, IgnoresHowTheFileIsWritten) {
  EXPECT_EQ(RevisionOf(kJob),
            RevisionOf("# A comment.\n"
                       "handler:\n  linked: \"bill\"\n"
                       "input:\n  header: true   # the default\n  format: csv\n  delimiter: ','\n"
                       "  quote: double\n  multiline: true\n"
                       "  columns:\n    quantity: Quantity\n    price: Price\n"
                       "name: bills\n"
                       "item: {transactions: 500, max_bytes: 262144}\n"
                       "groups:\n- measures:\n    revenue: decimal(2)\n    units: int\n"
                       "  name: total\n  keys: [day]\n"
                       "queue: {ttl: 168h, visibility: 0.5m}\n"));
}

TEST(RevisionTest, ChangesWithAllThatDecidesResults) {
  const std::string job = kJob;
  const std::string revision = RevisionOf(job);
  const auto changed = [&](absl::string_view from, absl::string_view to) {
    std::string text = job;
    text.replace(text.find(std::string(from)), from.size(), std::string(to));
    return RevisionOf(text);
  };
  EXPECT_NE(revision, changed("name: bills", "name: bill"));
  EXPECT_NE(revision,
            changed("quantity: Quantity, price: Price", "price: Price, quantity: Quantity"));
  EXPECT_NE(revision, changed("price: Price", "price: UnitPrice"));
  EXPECT_NE(revision, changed("{linked: bill}", "{linked: other}"));
  EXPECT_NE(revision, changed("{linked: bill}", "{command: [bill]}"));
  EXPECT_NE(revision, changed("decimal(2)", "decimal(3)"));
  EXPECT_NE(revision, changed("units: int", "units: decimal(0)"));
  EXPECT_NE(revision, changed("[day]", "[day, shop]"));
  EXPECT_NE(revision, RevisionOf(job + "item: {transactions: 501}\n"));
  EXPECT_NE(revision, RevisionOf(job + "item: {max_bytes: 255KiB}\n"));
  EXPECT_NE(revision, RevisionOf(job + "queue: {partitions: 2}\n"));
  EXPECT_NE(revision, RevisionOf(job + "order_by: price\n"));
  EXPECT_NE(revision, changed("csv,", "csv, quote: none,"));
  EXPECT_NE(revision, changed("csv,", "csv, multiline: false,"));
  EXPECT_NE(changed("csv,", "csv, quote: none,"), changed("csv,", "csv, multiline: false,"));
}

// A user may change the patience with a batch, or the tolerance, and continue the batch.
TEST(RevisionTest, StaysWhereNoResultCanChange) {
  const std::string job(kJob);
  const std::string revision = RevisionOf(job);
  EXPECT_EQ(revision, RevisionOf(job + "queue: {max_attempts: 6, ttl: never, visibility: 10s}\n"));
  EXPECT_EQ(revision, RevisionOf(job + "queue: {max_drain: 2h}\n"));
  EXPECT_EQ(revision, RevisionOf(job + "sla: {max: 5m}\n"));
  EXPECT_EQ(revision, RevisionOf(job + "retention: {batch: 1h}\n"));
  EXPECT_EQ(revision, RevisionOf(job + "upload: {expires: 1h}\n"));
  EXPECT_EQ(revision, RevisionOf(job + "tolerate: {rejected: 1%}\n"));
  std::string with_deadline = job;
  with_deadline.replace(job.find("{linked: bill}"), 14, "{linked: bill, deadline: 5m}");
  EXPECT_EQ(revision, RevisionOf(with_deadline));
  const JobDefinition read = *ParseJob(with_deadline, "job.yaml");
  EXPECT_EQ(std::get<LinkedHandlerSpec>(read.handler).deadline, absl::Minutes(5));
}

TEST(RevisionTest, TellsTextsApartThatLookLikeSeveralLines) {
  const JobDefinition job = *ParseJob(kJob, "job.yaml");
  CommandHandlerSpec command;
  JobDefinition other = job;
  command.argv = {"a", "b"};
  other.handler = command;
  JobDefinition sly = job;
  command.argv = {"a\nhandler.argument=b"};
  sly.handler = command;
  EXPECT_NE(CanonicalText(other), CanonicalText(sly));
}

// Stored batches name their job by its revision: a change here makes every batch in progress
// impossible to finish.
TEST(RevisionTest, StaysWhatItWas) {
  EXPECT_EQ(CanonicalText(*ParseJob(kJob, "job.yaml")),
            "job=bills\n"
            "input.format=csv\ninput.header=true\ninput.delimiter=,\n"
            "column=quantity\nsource=Quantity\ncolumn=price\nsource=Price\n"
            "item.transactions=500\nitem.max_bytes=262144\n"
            "handler.linked=bill\n"
            "group=total\ngroup.key=day\ngroup.measure=revenue\ngroup.type=decimal(2)\n"
            "group.measure=units\ngroup.type=int\n"
            "queue.partitions=1\n");
  EXPECT_EQ(RevisionOf(kJob).size(), 32u);
}

TEST(JobTest, ShowsHandlersTheirSchema) {
  const JobDefinition job = *ParseJob(kJob, "job.yaml");
  const handler::JobSchema schema = job.schema();
  EXPECT_EQ(schema.job, "bills");
  EXPECT_EQ(schema.revision, job.revision);
  EXPECT_EQ(schema.FindColumn("price")->index, 1);
  ASSERT_EQ(schema.groups.size(), 1u);
  EXPECT_EQ(schema.groups[0].measures[0].scale, 2);
}

TEST(ToleranceTest, CountsRejections) {
  const Tolerance none;
  EXPECT_TRUE(none.Allows(0, 10));
  EXPECT_FALSE(none.Allows(1, 10));
  EXPECT_TRUE((Tolerance{3, {}}.Allows(3, 10)));
}

TEST(ToleranceTest, TakesSharesExactly) {
  const Tolerance one_percent{0, 10'000};
  EXPECT_TRUE(one_percent.Allows(1, 100));
  EXPECT_FALSE(one_percent.Allows(1, 99));
  EXPECT_TRUE(one_percent.Allows(0, 0));
  const int64_t many = int64_t{1} << 62;
  EXPECT_TRUE(one_percent.Allows(many / 100, many));
  EXPECT_FALSE(one_percent.Allows(many / 100 + 1, many));
}

}  // namespace
}  // namespace muster::job
