// SPDX-License-Identifier: Apache-2.0
#include "muster/input/csv_record.h"

#include <gtest/gtest.h>

#include <string>

namespace muster::input {
namespace {

using Fault = CsvRecord::Fault;

CsvRecord Measure(const std::string& text, size_t max_bytes = 100) {
  return MeasureCsvRecord(text, ',', max_bytes);
}

TEST(CsvRecordTest, EndsAtTheFirstNewlineOutsideOfQuotes) {
  const CsvRecord record = Measure("a,\"b\nc\",d\r\nnext\n");
  EXPECT_EQ(record.fault, Fault::kNone);
  EXPECT_EQ(record.text, 9u);
  EXPECT_EQ(record.bytes, 11u);
  EXPECT_EQ(record.lines, 2);
}

TEST(CsvRecordTest, EndsAtTheEndOfTheTextWithoutANewline) {
  EXPECT_EQ(Measure("a,\"b\"").bytes, 5u);
  EXPECT_EQ(Measure("\"b\"\r").text, 3u);
}

TEST(CsvRecordTest, TakesDoubledQuotesForText) {
  EXPECT_EQ(Measure("\"a\"\"\n\"\"b\"\nc").bytes, 10u);
  EXPECT_EQ(Measure("\"\"\"\"\nc").bytes, 5u);
}

TEST(CsvRecordTest, TakesAQuoteInAPlainFieldForText) {
  const CsvRecord record = Measure("pipe 3\",4\nx");
  EXPECT_EQ(record.fault, Fault::kNone);
  EXPECT_EQ(record.bytes, 10u);
}

TEST(CsvRecordTest, LosesOneLineToAQuoteThatIsNeverClosed) {
  const CsvRecord record = Measure("a,\"b,c\n1,2,3\n4,5,6\n");
  EXPECT_EQ(record.bytes, 7u);
  EXPECT_EQ(record.lines, 1);
  EXPECT_EQ(FaultReason(record), "field 2 opens a quote that is never closed");
}

TEST(CsvRecordTest, LosesOneLineToAQuoteThatALaterQuotedFieldSeemsToClose) {
  const CsvRecord record = Measure("a,\"b,c\n1,\"2\",3\n");
  EXPECT_EQ(record.bytes, 7u);
  EXPECT_EQ(FaultReason(record), "field 2 opens a quote that is never closed");
}

TEST(CsvRecordTest, TellsOfARecordByItselfWhetherItHasAnUnclosedQuote) {
  InputFormat format;
  EXPECT_TRUE(HasUnclosedQuote("a,\"b,c", format));
  EXPECT_TRUE(HasUnclosedQuote("3\",\"a", format));
  EXPECT_FALSE(HasUnclosedQuote("a,\"b\nb\",3", format));
  EXPECT_FALSE(HasUnclosedQuote("a,\"b\"c,\"d", format)) << "it ends with its line in any case";
  EXPECT_FALSE(HasUnclosedQuote("pipe 3\",4", format));
  format.multiline = false;
  EXPECT_FALSE(HasUnclosedQuote("a,\"b,c", format)) << "a line is a record";
  format = InputFormat();
  format.quotes = false;
  EXPECT_FALSE(HasUnclosedQuote("a,\"b,c", format));
  format = InputFormat();
  format.kind = InputFormat::Kind::kLines;
  EXPECT_FALSE(HasUnclosedQuote("a,\"b,c", format));
}

TEST(CsvRecordTest, LosesOneLineToTextBehindAClosingQuote) {
  const CsvRecord record = Measure("a,\"b\"c,d\nnext\n");
  EXPECT_EQ(record.bytes, 9u);
  EXPECT_EQ(FaultReason(record), "text follows the closing quote of field 2");
}

TEST(CsvRecordTest, WantsNoPlainQuotesInARecordOfSeveralLines) {
  EXPECT_EQ(Measure("3\",\"a\nb\"\n").bytes, 6u);
  EXPECT_EQ(Measure("\"a\nb\",3\"\n").bytes, 3u);
}

TEST(CsvRecordTest, LooksNoFurtherThanARecordMayReach) {
  EXPECT_EQ(Measure("\"a\n234\"\n", 7).fault, Fault::kNone);
  EXPECT_EQ(Measure("\"a\n2345\"\n", 7).fault, Fault::kUnclosedQuote);
  EXPECT_EQ(Measure("\"2345\n", 5).fault, Fault::kUnclosedQuote);
  EXPECT_EQ(Measure("\"23456\n", 5).fault, Fault::kTooLong);
  EXPECT_EQ(Measure("\"23456", 5).fault, Fault::kTooLong);
}

TEST(CsvRecordTest, UnescapesDoubledQuotes) {
  char out[16];
  EXPECT_EQ(std::string(out, UnescapeQuotes("a\"\"b\"\"", out)), "a\"b\"");
}

}  // namespace
}  // namespace muster::input
