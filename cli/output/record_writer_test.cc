// SPDX-License-Identifier: Apache-2.0
#include "cli/output/record_writer.h"

#include <sstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace muster::cli {
namespace {

using Type = base::OutputColumn::Type;

std::string Written(OutputFormat format, const std::vector<base::OutputRecord>& records) {
  std::ostringstream out;
  RecordWriter writer(
      {{"note", Type::kText, 0}, {"count", Type::kInt, 0}, {"total", Type::kDecimal, 2}}, format,
      &out);
  writer.Begin();
  for (const base::OutputRecord& record : records) writer.Add(record);
  return out.str();
}

TEST(RecordWriterTest, WritesCsvWithAHeaderAndQuotesWhereTheyAreNeeded) {
  EXPECT_EQ(Written(OutputFormat::kCsv, {{1, {"a \"b\",\nc", "7", "1.50"}}, {2, {"é", "", ""}}}),
            "note,count,total\n\"a \"\"b\"\",\nc\",7,1.50\né,,\n");
}

TEST(RecordWriterTest, WritesTheHeaderWhereThereAreNoRecords) {
  EXPECT_EQ(Written(OutputFormat::kCsv, {}), "note,count,total\n");
  EXPECT_EQ(Written(OutputFormat::kJson, {}), "");
}

TEST(RecordWriterTest, WritesARecordOfOneAbsentFieldAsALineThatReadersDoNotSkip) {
  std::ostringstream out;
  RecordWriter writer({{"note", Type::kText, 0}}, OutputFormat::kCsv, &out);
  writer.Add({1, {""}});
  EXPECT_EQ(out.str(), "\"\"\n");
}

TEST(RecordWriterTest, WritesJsonWhoseNumbersNoReaderRounds) {
  EXPECT_EQ(Written(OutputFormat::kJson,
                    {{1, {"a \"b\"\n", "9223372036854775807", "1.50"}}, {2, {"", "", ""}}}),
            "{\"note\":\"a \\\"b\\\"\\n\",\"count\":9223372036854775807,\"total\":\"1.50\"}\n"
            "{\"note\":\"\",\"count\":null,\"total\":null}\n");
}

}  // namespace
}  // namespace muster::cli
