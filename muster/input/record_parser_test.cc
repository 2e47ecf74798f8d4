// SPDX-License-Identifier: Apache-2.0
#include "muster/input/record_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace muster::input {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class RecordParserTest : public ::testing::Test {
 protected:
  // "line: field|field" of each sound record.
  std::vector<std::string> Parse(const std::string& slice) {
    slice_ = slice;
    parser().Parse(slice_, 10, &out_);
    std::vector<std::string> records;
    for (size_t i = 0; i < out_.records.size(); ++i) {
      records.push_back(
          absl::StrCat(out_.records[i].line, ": ", absl::StrJoin(out_.Fields(i), "|")));
    }
    return records;
  }
  // "ordinal@line: reason" of each rejected one, after Parse.
  std::vector<std::string> rejected() const {
    std::vector<std::string> rejected;
    for (const RejectedRecord& r : out_.rejected) {
      rejected.push_back(absl::StrCat(r.ordinal, "@", r.line, ": ", r.reason));
    }
    return rejected;
  }
  virtual RecordParser parser() const = 0;

  std::string slice_;
  ParsedRecords out_;
};

// id,name,price with a header; the job wants price and name.
class CsvTest : public RecordParserTest {
 protected:
  CsvTest() { format_.columns = {{"price", "price"}, {"name", "name"}}; }
  RecordParser parser() const override { return RecordParser(format_, {2, 1}, 3); }
  InputFormat format_;
};

TEST_F(CsvTest, PicksTheWantedFields) {
  EXPECT_THAT(Parse("1,a,2.5\n2,b,3\r\n3,c,4"), ElementsAre("10: 2.5|a", "11: 3|b", "12: 4|c"));
}

// Positions come out of stored messages, and a damaged one must not lead out of the record.
TEST_F(CsvTest, RejectsAllRecordsWhenThePositionsAreNotTheJobs) {
  const int kNone = std::numeric_limits<int>::max();
  for (const std::vector<int>& positions :
       {std::vector<int>{2, -1}, {2, 3}, {2, kNone}, {2}, {2, 1, 0}, {}}) {
    EXPECT_TRUE(absl::IsDataLoss(RecordParser::CheckPositions(format_, positions, 3)));
    const RecordParser damaged(format_, positions, 3);
    damaged.Parse("1,a,2.5\n\"2\",b,3\n", 10, &out_);
    EXPECT_EQ(out_.records.size(), 0u);
    ASSERT_EQ(out_.rejected.size(), 2u);
    EXPECT_THAT(out_.rejected[1].reason, HasSubstr("the item names"));
  }
  EXPECT_TRUE(RecordParser::CheckPositions(format_, {2, 1}, 3).ok());
  EXPECT_TRUE(RecordParser::CheckPositions(format_, {2, 1}, 0).ok());
}

TEST_F(CsvTest, UnquotesFields) {
  EXPECT_THAT(Parse("\"1\",\"a, \"\"b\"\"\nc\",\"\"\n2,x,y\n"),
              ElementsAre("10: |a, \"b\"\nc", "12: y|x"));
}

TEST_F(CsvTest, KeepsSpacesEmptyFieldsAndPlainQuotes) {
  EXPECT_THAT(Parse("1, a ,\n2,3\" pipe,x\n"), ElementsAre("10: | a ", "11: x|3\" pipe"));
}

TEST_F(CsvTest, SkipsEmptyLinesAndKeepsTheLineNumbers) {
  EXPECT_THAT(Parse("\n1,a,2\n\r\n2,b,3\n"), ElementsAre("11: 2|a", "13: 3|b"));
}

TEST_F(CsvTest, RejectsRaggedRows) {
  EXPECT_THAT(Parse("1,a\n2,b,3\n3,c,4,5\n\"4\"\n"), ElementsAre("11: 3|b"));
  EXPECT_THAT(rejected(), ElementsAre("0@10: row has 2 fields, the header has 3",
                                      "2@12: row has 4 fields, the header has 3",
                                      "3@13: row has 1 field, the header has 3"));
  EXPECT_EQ(out_.records[0].ordinal, 1);
}

TEST_F(CsvTest, RejectsOnlyTheLineWithTheBrokenQuote) {
  EXPECT_THAT(Parse("1,\"a,2\n2,b,3\n3,\"c\"d,4\n4,e,5\n"), ElementsAre("11: 3|b", "13: 5|e"));
  EXPECT_THAT(rejected(), ElementsAre("0@10: field 2 opens a quote that is never closed",
                                      "2@12: text follows the closing quote of field 2"));
}

TEST_F(CsvTest, RejectsRowsThatAreNotUtf8) {
  EXPECT_THAT(Parse("1,caf\xE9,2\n2,café,3\n3,\xC0\x80,4\n"), ElementsAre("11: 3|café"));
  EXPECT_THAT(rejected(), ElementsAre("0@10: not UTF-8: byte 6 of the row",
                                      "2@12: not UTF-8: byte 3 of the row"));
}

TEST_F(CsvTest, RejectsACrThatNoLfFollowsUnlessItIsQuoted) {
  EXPECT_THAT(Parse("1,a,2\r2,b,3\n3,\"c\rc\",4\r\n4,\"d\",5\r\r\n5,e,6\r"),
              ElementsAre("11: 4|c\rc", "13: 6|e"));
  EXPECT_THAT(
      rejected(),
      ElementsAre("0@10: a CR that no LF follows: byte 6 of the row; lines end with LF or CRLF",
                  "2@12: a CR that no LF follows: byte 8 of the row; lines end with LF or "
                  "CRLF"));
}

TEST_F(CsvTest, RejectsRowsWithANulByte) {
  EXPECT_THAT(Parse(std::string("1,a,2\n2,\0,3\n3,\"\0\",4\n", 20)), ElementsAre("10: 2|a"));
  EXPECT_THAT(rejected(), ElementsAre("1@11: a NUL byte: byte 3 of the row",
                                      "2@12: a NUL byte: byte 4 of the row"));
}

TEST_F(CsvTest, TakesQuotesForTextWhereThereAreNone) {
  format_.quotes = false;
  EXPECT_THAT(Parse("1,\"a,2\n2,b\",3\n3,\"c\",4\n"),
              ElementsAre("10: 2|\"a", "11: 3|b\"", "12: 4|\"c\""));
}

TEST_F(CsvTest, RejectsALineThatDoesNotCloseItsQuoteWhereRecordsAreLines) {
  format_.multiline = false;
  EXPECT_THAT(Parse("1,\"a,2\n2,b,3\n3,c\",4\n4,\"d\",5\n"),
              ElementsAre("11: 3|b", "12: 4|c\"", "13: 5|d"));
  EXPECT_THAT(rejected(), ElementsAre("0@10: field 2 opens a quote that its line does not close"));
}

TEST_F(CsvTest, ObeysTheDelimiter) {
  format_.delimiter = '\t';
  EXPECT_THAT(Parse("1\ta,b\t\"x\ty\"\n"), ElementsAre("10: x\ty|a,b"));
}

TEST_F(CsvTest, ForgetsTheLastSlice) {
  Parse("1,\"a\",2\n1\n");
  EXPECT_THAT(Parse("2,b,3\n"), ElementsAre("10: 3|b"));
  EXPECT_THAT(rejected(), IsEmpty());
}

class CsvWithoutHeaderTest : public CsvTest {
 protected:
  RecordParser parser() const override { return RecordParser(format_, {2, 1}, 0); }
};

TEST_F(CsvWithoutHeaderTest, NeedsOnlyTheFieldsThatTheJobReads) {
  EXPECT_THAT(Parse("1,a\n1,a,2,3,4\n"), ElementsAre("11: 2|a"));
  EXPECT_THAT(rejected(), ElementsAre("0@10: row has 2 fields, the job reads field 3"));
}

class JsonlTest : public RecordParserTest {
 protected:
  RecordParser parser() const override {
    InputFormat format;
    format.kind = InputFormat::Kind::kJsonl;
    format.columns = {{"price", "unit price"}, {"name", "name"}};
    return RecordParser(format, {}, 0);
  }
};

TEST_F(JsonlTest, PicksTheWantedMembers) {
  EXPECT_THAT(Parse("{\"name\":\"a\\u00e9\\n\",\"x\":[1,{\"name\":2}],\"unit price\":1}\r\n\n{}\n"),
              ElementsAre("10: 1|aé\n", "12: |"));
}

TEST_F(JsonlTest, KeepsNumbersAsTheyAreWritten) {
  EXPECT_THAT(
      Parse("{\"unit price\":12345678901234567890.10,\"name\":-7}\n"
            "{\"unit price\":1e2,\"name\":123456789012345678901234567890}\n"),
      ElementsAre("10: 12345678901234567890.10|-7", "11: 1e2|123456789012345678901234567890"));
}

TEST_F(JsonlTest, ShowsWordsAndNestedValues) {
  EXPECT_THAT(
      Parse("{\"name\":null,\"unit price\":true}\n"
            "{\"name\":{\"a\" : [ 1.50, null, \"\\t\\\"\\u0001/\" ], \"b\":{} },"
            " \"unit price\":[[],false]}\n"),
      ElementsAre("10: true|", "11: [[],false]|{\"a\":[1.50,null,\"\\t\\\"\\u0001/\"],\"b\":{}}"));
}

TEST_F(JsonlTest, RejectsWhatIsNoObject) {
  EXPECT_THAT(Parse("[1]\n\"a\"\n7\nnull\n"), IsEmpty());
  EXPECT_THAT(rejected(), ElementsAre("0@10: not a JSON object", "1@11: not a JSON object",
                                      "2@12: not a JSON object", "3@13: not a JSON object"));
}

TEST_F(JsonlTest, RejectsBrokenJsonWithItsPlace) {
  EXPECT_THAT(Parse("{\"name\":tru}\n{\"name\":\"a\"}\n{\"name\":1\n{} {}\n   \n"),
              ElementsAre("11: |a"));
  ASSERT_EQ(rejected().size(), 4u);
  EXPECT_THAT(rejected()[0], HasSubstr("0@10: not JSON: byte 12: invalid literal"));
  EXPECT_THAT(rejected()[1], HasSubstr("2@12: not JSON: byte 10: "));
}

TEST_F(JsonlTest, RejectsAWantedMemberThatIsThereTwice) {
  EXPECT_THAT(Parse("{\"name\":1,\"x\":1,\"x\":2,\"name\":2}\n{\"x\":1,\"x\":2}\n"),
              ElementsAre("11: |"));
  EXPECT_THAT(rejected(), ElementsAre("0@10: the member 'name' is there twice"));
}

TEST_F(JsonlTest, RejectsLinesThatAreNotUtf8) {
  EXPECT_THAT(Parse("{\"name\":\"\xE9\"}\n"), IsEmpty());
  EXPECT_THAT(rejected(), ElementsAre("0@10: not UTF-8: byte 10 of the line"));
}

class LinesTest : public RecordParserTest {
 protected:
  RecordParser parser() const override {
    InputFormat format;
    format.kind = InputFormat::Kind::kLines;
    format.columns = {{"line", 1}};
    return RecordParser(format, {}, 0);
  }
};

TEST_F(LinesTest, GivesTheWholeLine) {
  EXPECT_THAT(Parse("a,\"b \r\n\n c"), ElementsAre("10: a,\"b ", "12:  c"));
}

TEST_F(LinesTest, RejectsLinesThatAreNotUtf8) {
  EXPECT_THAT(Parse("a\n\xFF\n"), ElementsAre("10: a"));
  EXPECT_THAT(rejected(), ElementsAre("1@11: not UTF-8: byte 1 of the line"));
}

TEST(OversizedReasonTest, SaysHowLongItIsAndHowLongItMayBe) {
  EXPECT_EQ(OversizedReason(100, 10), "the record has 100 bytes; at most 10 are allowed");
}

}  // namespace
}  // namespace muster::input
