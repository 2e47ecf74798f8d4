// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/call/record_form.h"

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/job/job_file.h"
#include "muster/rpc/status.h"

namespace muster::initiator::call {
namespace {

using ::testing::HasSubstr;

RecordForm FormOf(const std::string& input) {
  return RecordForm(job::ParseJob(absl::StrCat("name: shop\ninput: ", input, R"(
handler: {linked: shop}
groups:
  - {name: by_customer, keys: [customer], measures: {orders: int}}
)"),
                                  "shop.yaml")
                        .value()
                        .input);
}

std::string Read(const RecordForm& form, const std::string& record) {
  v1::CallRequest request;
  request.set_record(record);
  const auto read = form.RecordIn(request);
  return read.ok() ? *read : std::string(read.status().message());
}

std::string Write(const RecordForm& form, const std::map<std::string, std::string>& fields) {
  v1::CallRequest request;
  request.mutable_fields()->insert(fields.begin(), fields.end());
  const auto written = form.RecordIn(request);
  return written.ok() ? *written : std::string(written.status().message());
}

const char kCsv[] = "{format: csv, columns: {customer: Customer, note: 'Her, note'}}";
const char kJson[] = "{format: jsonl, columns: {customer: id, note: text}, optional: [note]}";

TEST(RecordFormTest, SuppliesTheHeaderOfACsv) {
  EXPECT_EQ(FormOf(kCsv).header(), "Customer,\"Her, note\"\n");
  EXPECT_EQ(FormOf(kJson).header(), "");
}

TEST(RecordFormTest, TakesARecordWithOrWithoutItsLineEnd) {
  const RecordForm form = FormOf(kCsv);
  EXPECT_EQ(Read(form, "ann,hello"), "ann,hello");
  EXPECT_EQ(Read(form, "ann,hello\n"), "ann,hello");
  EXPECT_EQ(Read(form, "ann,hello\r\n"), "ann,hello");
  EXPECT_EQ(Read(form, "ann,\"two\nlines\""), "ann,\"two\nlines\"");
}

// Each of these would take from the records beside it, or add to them.
TEST(RecordFormTest, RefusesWhatIsNotExactlyOneRecord) {
  const RecordForm form = FormOf(kCsv);
  EXPECT_THAT(Read(form, "ann,x\nbob,y"), HasSubstr("must be one record"));
  EXPECT_THAT(Read(form, "ann,x\n\n"), HasSubstr("must be one record"));
  EXPECT_THAT(Read(form, "ann,\"open"), HasSubstr("never closed"));
  EXPECT_THAT(Read(form, "ann"), HasSubstr("row has 1 field"));
  EXPECT_THAT(Read(form, "\n"), HasSubstr("is empty"));
  EXPECT_THAT(Read(form,
                   "\xef\xbb\xbf"
                   "ann,x"),
              HasSubstr("byte order mark"));
  EXPECT_THAT(Read(form, "ann,\xff"), HasSubstr("UTF-8"));
  EXPECT_THAT(Read(form, std::string(kMaxCallRecordBytes + 1, 'x')),
              HasSubstr("has 15361 bytes, and may have 15360"));
  EXPECT_THAT(Read(FormOf(kJson), R"({"id":"1"}{"id":"2"})"), HasSubstr("record: "));
  EXPECT_THAT(Read(FormOf(kJson), R"({"Id":"1"})"), HasSubstr("record: "));
}

TEST(RecordFormTest, NamesTheFieldThatIsWrong) {
  v1::CallRequest request;
  request.set_record("ann,x");
  (*request.mutable_fields())["customer"] = "ann";
  const auto both = FormOf(kCsv).RecordIn(request);
  ASSERT_EQ(rpc::Violations(both.status()).size(), 1);
  EXPECT_EQ(rpc::Violations(both.status()).front().field, "fields");
  EXPECT_THAT(Write(FormOf(kCsv), {{"custmer", "ann"}}),
              HasSubstr("'custmer' is no column of the job: it has customer, note"));
}

TEST(RecordFormTest, WritesACsvLineOfFieldsThatReadsAsThem) {
  const RecordForm form = FormOf(kCsv);
  EXPECT_EQ(Write(form, {{"note", "a \"b\", c"}, {"customer", "ann"}}), "ann,\"a \"\"b\"\", c\"");
  EXPECT_EQ(Write(form, {{"note", "two\nlines"}}), ",\"two\nlines\"");
  EXPECT_EQ(Write(FormOf("{format: csv, columns: {customer: customer}}"), {}), "\"\"");
}

TEST(RecordFormTest, WritesFieldsToTheirPlacesWhereACsvHasNoHeader) {
  const RecordForm form = FormOf("{format: csv, header: false, columns: {customer: 3, note: 1}}");
  EXPECT_EQ(form.header(), "");
  EXPECT_EQ(Write(form, {{"customer", "ann"}, {"note", "x"}}), "x,,ann");
}

TEST(RecordFormTest, WritesAJsonObjectWithoutAbsentMembers) {
  const RecordForm form = FormOf(kJson);
  EXPECT_EQ(Write(form, {{"customer", "\"7\"\n\\"}}), R"({"id":"\"7\"\u000a\\"})");
  EXPECT_EQ(Write(form, {{"customer", "7"}, {"note", "é"}}), R"({"id":"7","text":"é"})");
}

TEST(RecordFormTest, WritesALine) {
  const RecordForm form = FormOf("{format: lines}");
  EXPECT_EQ(Write(form, {{"line", "as it stands"}}), "as it stands");
  EXPECT_THAT(Write(form, {{"line", "two\nlines"}}), HasSubstr("must be one record"));
}

}  // namespace
}  // namespace muster::initiator::call
