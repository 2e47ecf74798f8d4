#include "muster/input/header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace muster::input {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class HeaderTest : public ::testing::Test {
 protected:
  HeaderTest() { format_.columns = {{"price", "Price"}, {"name", "Name"}}; }

  absl::StatusOr<Header> Read(const std::string& text) {
    return ReadHeader(TextSource(text), format_);
  }
  std::string ErrorOf(const std::string& text) {
    return std::string(Read(text).status().message());
  }

  InputFormat format_;
};

TEST_F(HeaderTest, FindsTheColumnsInTheirOwnOrder) {
  const Header header = *Read("Id,Name,Price\n1,a,2\n");
  EXPECT_THAT(header.positions, ElementsAre(2, 1));
  EXPECT_THAT(header.fields, ElementsAre("Id", "Name", "Price"));
  EXPECT_EQ(header.data.offset, 14u);
  EXPECT_EQ(header.data.line, 2);
}

TEST_F(HeaderTest, SkipsAByteOrderMarkAndEmptyLines) {
  const Header header = *Read("\xEF\xBB\xBF\r\n\nName,Price\r\n1,2\n");
  EXPECT_THAT(header.fields, ElementsAre("Name", "Price"));
  EXPECT_EQ(header.data.offset, 18u);
  EXPECT_EQ(header.data.line, 4);
}

TEST_F(HeaderTest, ReadsQuotedNamesOverSeveralLines) {
  const Header header = *Read("\"Name\",\"The\n\"\"new\"\"\",Price");
  EXPECT_THAT(header.fields, ElementsAre("Name", "The\n\"new\"", "Price"));
  EXPECT_EQ(header.data.line, 3);
}

TEST_F(HeaderTest, NamesAMissingColumnTheNearestOneAndAllThatThereAre) {
  EXPECT_EQ(ErrorOf("Name,Pirce,Id\n"),
            "the input has no column 'Price'; did you mean 'Pirce'? (its columns: 'Name', 'Pirce', "
            "'Id')");
}

TEST_F(HeaderTest, RefusesAWantedNameThatIsThereTwice) {
  EXPECT_EQ(ErrorOf("Name,Price,Name\n"),
            "the header names the column 'Name' twice: fields 1 and 3");
  EXPECT_TRUE(Read("Name,Price,Other,Other\n").ok());
}

TEST_F(HeaderTest, RefusesUtf16) {
  EXPECT_THAT(ErrorOf(std::string("\xFF\xFEN\0", 4)), HasSubstr("UTF-16, not UTF-8"));
}

TEST_F(HeaderTest, RefusesAHeaderThatIsNotUtf8) {
  EXPECT_EQ(ErrorOf("Name,Pr\xEAs\n"), "the header is not UTF-8: byte 8 of it");
}

TEST_F(HeaderTest, RefusesAnEmptyInput) {
  EXPECT_EQ(ErrorOf(""), "the input is empty, but the job expects a header");
  EXPECT_EQ(ErrorOf("\xEF\xBB\xBF\n\n"), "the input is empty, but the job expects a header");
}

TEST_F(HeaderTest, RefusesAHeaderWithBrokenQuotes) {
  EXPECT_EQ(ErrorOf("Name,\"Price\n1,2\n"),
            "the header cannot be read: field 2 opens a quote that is never closed");
}

TEST_F(HeaderTest, RefusesLinesThatEndWithCrAlone) {
  EXPECT_THAT(ErrorOf("Name,Price\r1,2\r"), HasSubstr("end with CR alone"));
}

TEST_F(HeaderTest, IsFineWithAHeaderAlone) { EXPECT_EQ(Read("Name,Price")->data.offset, 10u); }

TEST_F(HeaderTest, TakesPositionsWhereThereIsNoHeader) {
  format_.header = false;
  format_.columns = {{"price", 3}, {"name", 1}};
  const Header header = *Read("1,2,3\n");
  EXPECT_THAT(header.positions, ElementsAre(2, 0));
  EXPECT_EQ(header.data.offset, 0u);
  EXPECT_TRUE(Read("").ok());
}

TEST_F(HeaderTest, ExpectsNoHeaderInOtherFormats) {
  format_.kind = InputFormat::Kind::kJsonl;
  EXPECT_EQ(Read("\xEF\xBB\xBF{}\n")->data.offset, 3u);
}

}  // namespace
}  // namespace muster::input
