// SPDX-License-Identifier: Apache-2.0
#include "muster/input/content_kind.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "muster/input/json_members.h"

namespace muster::input {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ContentKindTest : public ::testing::Test {
 protected:
  // Why the input is refused; "" when it is not.
  std::string Check(const std::string& text) {
    const absl::Status status = CheckContentKind(TextSource(text), format_);
    EXPECT_TRUE(status.ok() || absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  }
  void Use(InputFormat::Kind kind) { format_.kind = kind; }

  static std::string Rows(int rows, const std::string& row) {
    std::string text = "name,price\n";
    for (int i = 0; i < rows; ++i) absl::StrAppend(&text, row, "\n");
    return text;
  }
  // `text`, which is ASCII, with `before` and `behind` NUL bytes around each character.
  static std::string Wide(const std::string& text, size_t before, size_t behind) {
    std::string wide;
    for (const char c : text) {
      wide += std::string(before, '\0') + c + std::string(behind, '\0');
    }
    return wide;
  }

  InputFormat format_;
};

TEST_F(ContentKindTest, TakesWhatIsTextOfRecords) {
  for (const std::string& text :
       {std::string(), std::string("name,price\n"), std::string("name,price"), Rows(9, "größe,1"),
        Rows(9, "a,\"b\r\rc\""), "\xEF\xBB\xBF" + Rows(1, "a,1"), std::string("\n\n\n"),
        Rows(2,
             "gr\xF6\xDF"
             "e,1"),
        Rows(20, "größe,1") + "gr\xF6\xDF"
                              "e,1\n"}) {
    EXPECT_THAT(Check(text), IsEmpty()) << text;
  }
  Use(InputFormat::Kind::kLines);
  for (const char* text : {"<html>\n", "[\n", "sep=;\n", "BZh, said the bee\n", "%PDF- is a mark\n",
                           "PAR1\n", "a\rb\nc\nd\n", "\x1b[1mbold\x1b[0m\n"}) {
    EXPECT_THAT(Check(text), IsEmpty()) << text;
  }
  Use(InputFormat::Kind::kJsonl);
  for (const char* text : {"{\"a\":1}\n", "oops\n", "oops\noops\noops\n{}\n", "[INFO] hi\n{}\n",
                           "\n\n{}", "{\"a\":\r1}\n"}) {
    EXPECT_THAT(Check(text), IsEmpty()) << text;
  }
}

TEST_F(ContentKindTest, NamesCompressedFilesInEveryFormat) {
  for (const auto kind :
       {InputFormat::Kind::kCsv, InputFormat::Kind::kJsonl, InputFormat::Kind::kLines}) {
    Use(kind);
    EXPECT_EQ(
        Check("\x1F\x8B\x08 and so on"),
        "the input is compressed with gzip: unpack it first, for example with gzip -dc FILE > "
        "UNPACKED");
    EXPECT_THAT(Check("BZh91AY&SY\x01\x02"), HasSubstr("bzip2 -dc"));
    EXPECT_THAT(Check(std::string("\xFD"
                                  "7zXZ\0\0\4",
                                  8)),
                HasSubstr("xz -dc"));
    EXPECT_THAT(Check("\x28\xB5\x2F\xFD\x20"), HasSubstr("zstd -dc"));
    EXPECT_THAT(Check("PK\x03\x04\x14 a.csv"), HasSubstr("unzip -p"));
    EXPECT_THAT(Check("PK\x03\x04\x14 xl/workbook.xml"), HasSubstr("Excel"));
    EXPECT_THAT(Check("PAR1\x15\x04"), HasSubstr("Parquet"));
    EXPECT_THAT(Check("%PDF-1.7\n%\xE2\xE3"), HasSubstr("PDF"));
    EXPECT_THAT(Check(std::string("a.csv") + std::string(252, '\0') + "ustar"),
                HasSubstr("tar -xf"));
  }
}

TEST_F(ContentKindTest, NamesEncodingsWithTheCommandThatConvertsThem) {
  const std::string rows = Rows(30, "a,1");
  EXPECT_THAT(Check(Wide(rows, 0, 1)), HasSubstr("iconv -f UTF-16LE -t UTF-8"));
  EXPECT_THAT(Check(Wide(rows, 1, 0)), HasSubstr("iconv -f UTF-16BE -t UTF-8"));
  EXPECT_THAT(Check(Wide(rows, 0, 3)), HasSubstr("iconv -f UTF-32LE -t UTF-8"));
  EXPECT_THAT(Check(Wide(rows, 3, 0)), HasSubstr("iconv -f UTF-32BE -t UTF-8"));
  EXPECT_THAT(Check("\xFF\xFE" + Wide(rows, 0, 1)), HasSubstr("iconv -f UTF-16 -t UTF-8"));
  EXPECT_THAT(Check(std::string("\xFF\xFE\0\0", 4) + Wide(rows, 0, 3)),
              HasSubstr("iconv -f UTF-32 -t UTF-8"));
  EXPECT_EQ(
      Check(Rows(3,
                 "gr\xF6\xDF"
                 "e,1")),
      "the input is not UTF-8: 3 of its first 4 lines are not, at first byte 3 of line 2. Its "
      "encoding is probably Latin-1: convert it, for example with iconv -f LATIN1 -t UTF-8");
  EXPECT_THAT(Check(Rows(3, "5 \x80,1")), HasSubstr("iconv -f WINDOWS-1252 -t UTF-8"));
  EXPECT_THAT(Check("\x01\xFF\n\x02\xFE\n\x03\xFD\n"), HasSubstr("binary data"));
}

TEST_F(ContentKindTest, RefusesLineEndsThatWouldMakeManyRecordsOne) {
  for (const auto kind :
       {InputFormat::Kind::kCsv, InputFormat::Kind::kJsonl, InputFormat::Kind::kLines}) {
    Use(kind);
    EXPECT_THAT(Check("a\rb\rc\r"), AllOf(HasSubstr("CR alone"), HasSubstr("tr '\\r' '\\n'")));
    EXPECT_THAT(Check("a\r\r\nb\r\r\n"), AllOf(HasSubstr("CR CR LF"), HasSubstr("tr -d '\\r'")));
  }
  EXPECT_THAT(Check("a\rb\rc\rd\n"), HasSubstr("CR alone"));
}

TEST_F(ContentKindTest, RefusesNulPaddingAtBothEnds) {
  EXPECT_EQ(
      Check(std::string(2, '\0') + "a,1\n"),
      "the input begins with 2 NUL bytes: a part of it was not written, as after a crash or a "
      "copy that was cut off");
  EXPECT_THAT(Check("name\na\n" + std::string(100, '\0')),
              HasSubstr("ends with 100 NUL bytes, from byte 8 on"));
}

TEST_F(ContentKindTest, RefusesWhatStandsInsteadOfACsv) {
  EXPECT_THAT(Check("\n<!DOCTYPE HTML>\n"), HasSubstr("HTML page"));
  EXPECT_THAT(Check("<?xml version=\"1.0\"?>\n"), HasSubstr("XML"));
  EXPECT_EQ(Check("sep=;\r\na;b\r\n"),
            "the input begins with 'sep=;', which only Excel reads: delete this line, and write "
            "`delimiter: \";\"` below `input` in the job file");
  for (const char* json : {"{\"a\": 1}\n", "[{\"a\": 1}]", "[\n {}\n]", "{\n"}) {
    EXPECT_THAT(Check(json), HasSubstr("JSON, not CSV")) << json;
  }
}

TEST_F(ContentKindTest, RefusesWhatStandsInsteadOfJsonLines) {
  Use(InputFormat::Kind::kJsonl);
  EXPECT_THAT(Check("[{\"a\":1},{\"a\":2}]"), HasSubstr("jq -c '.[]'"));
  EXPECT_THAT(Check("[\n{\"a\":1},\n{\"a\":2}\n]\n"), HasSubstr("jq -c '.[]'"));
  EXPECT_THAT(Check("[" + std::string(2 * kLookedAtBytes, ' ') + "]"), HasSubstr("jq -c '.[]'"));
  EXPECT_THAT(Check("{\n  \"a\": 1\n}\n{\n  \"a\": 2\n}\n"), HasSubstr("jq -c . FILE"));
  EXPECT_EQ(Check("a,b\n1,2\n3,4\n"),
            "none of the first 3 lines is a JSON object; the first is 'a,b': is `format: jsonl` of "
            "the job right?");
  // A record longer than what is looked at.
  EXPECT_THAT(Check("{\"a\":[" + std::string(kLookedAtBytes - 6, ',')), IsEmpty());
}

}  // namespace
}  // namespace muster::input
