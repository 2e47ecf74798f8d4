// SPDX-License-Identifier: Apache-2.0
#include "muster/input/slice_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace muster::input {

namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class SliceReaderTest : public ::testing::Test {
 protected:
  // "first line: data" of each slice; "first line: too long" for an oversized one.
  std::vector<std::string> Split(const std::string& text) {
    const TextSource source(text);
    SliceReader reader(&source, format_, limits_, SliceStart{});
    std::vector<std::string> slices;
    while (true) {
      const auto slice = reader.Next();
      EXPECT_TRUE(slice.ok()) << slice.status();
      if (!slice.ok() || !slice->has_value()) return slices;
      const Slice& s = **slice;
      const std::string data = s.oversized ? "too long" : std::string(s.data);
      slices.push_back(absl::StrCat(s.first_line, ": ", data));
      last_ = s;
    }
  }

  InputFormat format_;
  SliceLimits limits_;
  Slice last_;
};

TEST_F(SliceReaderTest, CutsAfterSoManyTransactions) {
  limits_.transactions = 2;
  EXPECT_THAT(Split("a\nb\nc\nd\ne\n"), ElementsAre("1: a\nb\n", "3: c\nd\n", "5: e\n"));
}

TEST_F(SliceReaderTest, CutsBeforeTooManyBytes) {
  limits_.max_bytes = 6;
  EXPECT_THAT(Split("aa\nbb\ncc\n"), ElementsAre("1: aa\nbb\n", "3: cc\n"));
}

TEST_F(SliceReaderTest, GivesARecordAboveMaxBytesASliceOfItsOwn) {
  limits_.max_bytes = 4;
  EXPECT_THAT(Split("a\nlonger\nb\n"), ElementsAre("1: a\n", "2: longer\n", "3: b\n"));
}

// Two stray quotes swallow what lies between them.
TEST_F(SliceReaderTest, CountsRecordsOfSeveralLines) {
  EXPECT_THAT(Split("a\n\"b\nc\nd\"\ne\n\n\"f\ng\"\n"),
              ElementsAre("1: a\n\"b\nc\nd\"\ne\n\n\"f\ng\"\n"));
  EXPECT_EQ(last_.multiline, (base::MultilineRecords{2, 5, {2, 7}}));
  limits_.transactions = 1;
  Split("a\n\"b\nc\"\nd\n");
  EXPECT_EQ(last_.multiline, base::MultilineRecords());
  format_.multiline = false;
  EXPECT_THAT(Split("\"b\nc\"\n"), ElementsAre("1: \"b\n", "2: c\"\n"));
  format_.quotes = false;
  EXPECT_THAT(Split("\"b\nc\"\n"), ElementsAre("1: \"b\n", "2: c\"\n"));
}

TEST_F(SliceReaderTest, TakesALastLineWithoutNewline) {
  EXPECT_THAT(Split("a\nb"), ElementsAre("1: a\nb"));
}

TEST_F(SliceReaderTest, CountsNoEmptyLines) {
  limits_.transactions = 2;
  EXPECT_THAT(Split("\n\r\na\n\n\nb\n\r\n\nc\n\n"), ElementsAre("3: a\n\n\nb\n", "9: c\n"));
  EXPECT_EQ(last_.transactions, 1u);
}

TEST_F(SliceReaderTest, FindsNothingInNothing) {
  EXPECT_THAT(Split(""), IsEmpty());
  EXPECT_THAT(Split("\n\r\n\r"), IsEmpty());
}

TEST_F(SliceReaderTest, KeepsAQuotedNewlineInItsRecord) {
  limits_.transactions = 1;
  EXPECT_THAT(Split("a,\"x\ny\"\nb\n"), ElementsAre("1: a,\"x\ny\"\n", "3: b\n"));
}

TEST_F(SliceReaderTest, GivesQuotesNoMeaningOutsideOfCsv) {
  limits_.transactions = 1;
  format_.kind = InputFormat::Kind::kLines;
  EXPECT_THAT(Split("\"a\nb\"\n"), ElementsAre("1: \"a\n", "2: b\"\n"));
}

TEST_F(SliceReaderTest, LosesOneLineToAnUnclosedQuote) {
  limits_.transactions = 1;
  EXPECT_THAT(Split("a,\"b\nc\nd\n"), ElementsAre("1: a,\"b\n", "2: c\n", "3: d\n"));
}

TEST_F(SliceReaderTest, SetsARecordThatIsTooLongApart) {
  format_.max_record_bytes = 4;
  EXPECT_THAT(Split("a\n1234\n12345\nb\n"), ElementsAre("1: a\n1234\n", "3: too long", "4: b\n"));
  EXPECT_THAT(Split("12345"), ElementsAre("1: too long"));
  EXPECT_EQ(last_.length, 5u);
  EXPECT_EQ(last_.transactions, 1u);
}

// Its lines were records: those that looked like some were counted.
TEST_F(SliceReaderTest, SetsARecordOfSeveralLinesThatIsTooLongApart) {
  format_.max_record_bytes = 8;
  EXPECT_THAT(Split("a,b\n1,\"x\nc,d\ne,f\n\"\ng,h\n"),
              ElementsAre("1: a,b\n", "2: too long", "6: g,h\n"));
  EXPECT_THAT(Split("1,\"x\nc,d\ne,f\n\""), ElementsAre("1: too long"));
  EXPECT_EQ(last_.length, 14u);
  EXPECT_EQ(last_.transactions, 1u);
  EXPECT_EQ(last_.multiline, (base::MultilineRecords{1, 4, {1}}));
  EXPECT_EQ(last_.next.line, 5);
  EXPECT_THAT(Split("1,\"345678\n\"\n"), ElementsAre("1: too long")) << "its first line is, too";
  format_.multiline = false;
  EXPECT_THAT(Split("1,\"x\nc,d\n\""), ElementsAre("1: 1,\"x\nc,d\n\""));
}

TEST_F(SliceReaderTest, LosesOneLineToAQuoteThatIsClosedByNoLineBehindIt) {
  format_.max_record_bytes = 8;
  EXPECT_THAT(Split("1,\"x\nc,d\ne,f\ng,h\n"), ElementsAre("1: 1,\"x\nc,d\ne,f\ng,h\n"));
  EXPECT_EQ(last_.transactions, 4u);
  EXPECT_THAT(Split("1,\"x\nc,d\ne,f\ng\"h\n"), ElementsAre("1: 1,\"x\nc,d\ne,f\ng\"h\n"))
      << "text follows it";
}

TEST_F(SliceReaderTest, ContinuesWhereASliceEnded) {
  limits_.transactions = 1;
  const std::string text = "a\n\n\"x\ny\"\nb\n";
  Split(text.substr(0, 9));
  EXPECT_EQ(last_.next.offset, 9u);
  EXPECT_EQ(last_.next.line, 5);
  const TextSource source(text);
  SliceReader reader(&source, format_, limits_, last_.next);
  const auto slice = reader.Next();
  EXPECT_EQ((*slice)->data, "b\n");
  EXPECT_EQ((*slice)->first_line, 5);
}

// An earlier bug ended the window, and the slice with it, inside such a line.
TEST_F(SliceReaderTest, SeesTheEndOfABrokenLineBeforeItCutsThere) {
  limits_ = {1, 0, 1};
  format_.max_record_bytes = 20;
  EXPECT_THAT(Split("0123456789012\na,\"b\"cdefgh\nc\n"),
              ElementsAre("1: 0123456789012\n", "2: a,\"b\"cdefgh\n", "3: c\n"));
}

// A line of 100 MB that is generated as it is read.
class LongLine final : public ByteSource {
 public:
  uint64_t size() const override { return uint64_t{100} << 20; }
  absl::StatusOr<size_t> Read(uint64_t offset, char* out, size_t bytes) const override {
    const size_t count = static_cast<size_t>(std::min<uint64_t>(bytes, size() - offset));
    largest_read_ = std::max(largest_read_, count);
    std::memset(out, 'x', count);
    if (offset + count == size()) std::memcpy(out + count - 3, "\nb\n", 3);
    return count;
  }
  mutable size_t largest_read_ = 0;
};

TEST_F(SliceReaderTest, SkipsAVeryLongLineWithoutHoldingIt) {
  const LongLine source;
  SliceReader reader(&source, format_, limits_, SliceStart{});
  const auto line = reader.Next();
  EXPECT_TRUE((*line)->oversized);
  EXPECT_TRUE((*line)->data.empty());
  EXPECT_EQ((*line)->length, source.size() - 2);
  EXPECT_EQ((*reader.Next())->data, "b\n");
  EXPECT_LE(source.largest_read_, size_t{2} << 20);
}

// A record whose quoted field holds so many lines, "a,b\n" each, before its quote is closed. It is
// generated as it is read.
class LongField final : public ByteSource {
 public:
  explicit LongField(uint64_t lines) : lines_(lines) {}
  uint64_t size() const override { return (lines_ + 2) * 4; }
  absl::StatusOr<size_t> Read(uint64_t offset, char* out, size_t bytes) const override {
    const size_t count =
        static_cast<size_t>(std::min<uint64_t>(bytes, size() - std::min(offset, size())));
    largest_read_ = std::max(largest_read_, count);
    for (size_t i = 0; i < count; ++i) {
      const uint64_t line = (offset + i) / 4;
      out[i] = (line == 0 ? "1,\"\n" : line <= lines_ ? "a,b\n" : "c,\"\n")[(offset + i) % 4];
    }
    return count;
  }
  mutable size_t largest_read_ = 0;

 private:
  const uint64_t lines_;
};

TEST_F(SliceReaderTest, LooksForTheEndOfALongRecordAsFarAsAFieldMayReachWithoutHoldingIt) {
  const LongField within(kMaxLongRecordBytes / 4 - 2);
  SliceReader reader(&within, format_, limits_, SliceStart{});
  const auto whole = reader.Next();
  EXPECT_TRUE((*whole)->oversized);
  EXPECT_EQ((*whole)->length, within.size());
  EXPECT_FALSE((*reader.Next()).has_value());
  EXPECT_LE(within.largest_read_, size_t{2} << 20);
  const LongField beyond(kMaxLongRecordBytes / 4);
  SliceReader by_line(&beyond, format_, limits_, SliceStart{});
  const auto first = by_line.Next();
  EXPECT_FALSE((*first)->oversized);
  EXPECT_EQ((*first)->transactions, limits_.transactions);
}

class BrokenSource final : public ByteSource {
 public:
  uint64_t size() const override { return 10; }
  absl::StatusOr<size_t> Read(uint64_t, char*, size_t) const override {
    return absl::UnavailableError("the disk is gone");
  }
};

TEST_F(SliceReaderTest, PassesOnWhatTheSourceSays) {
  const BrokenSource source;
  SliceReader reader(&source, format_, limits_, SliceStart{});
  EXPECT_EQ(reader.Next().status().message(), "the disk is gone");
}

// A text that has arrived in part.
class ArrivingText final : public ByteSource {
 public:
  explicit ArrivingText(absl::string_view text) : text_(text) {}

  void Grow(size_t bytes) { arrived_ = std::min(arrived_ + bytes, text_.size()); }
  bool whole() const { return arrived_ == text_.size(); }

  uint64_t size() const override { return whole() ? text_.size() : kStillGrowing; }
  absl::StatusOr<size_t> Read(uint64_t offset, char* out, size_t bytes) const override {
    if (!whole() && offset + bytes > arrived_) return NotArrivedYet();
    return TextSource(text_).Read(offset, out, bytes);
  }

 private:
  const absl::string_view text_;
  size_t arrived_ = 0;
};

TEST_F(SliceReaderTest, CutsATextThatIsStillArrivingAsItCutsTheWholeText) {
  limits_.transactions = 3;
  limits_.max_bytes = 16;
  limits_.read_bytes = 8;
  format_.max_record_bytes = 12;
  const std::string text = "a\n\"b\nb\",1\n\nccccc\ndd\nthis one is too long\ne\nf\ng\nlast";
  for (size_t piece = 1; piece <= text.size(); ++piece) {
    ArrivingText source(text);
    SliceStart start;
    std::vector<std::string> slices;
    while (true) {
      SliceReader reader(&source, format_, limits_, start);
      auto slice = reader.Next();
      for (; slice.ok() && slice->has_value(); slice = reader.Next()) {
        const Slice& s = **slice;
        slices.push_back(
            absl::StrCat(s.first_line, ": ", s.oversized ? "too long" : std::string(s.data)));
        start = s.next;
      }
      if (slice.ok()) break;
      ASSERT_TRUE(HasNotArrived(slice.status())) << slice.status();
      source.Grow(piece);
    }
    EXPECT_EQ(slices, Split(text)) << "in pieces of " << piece;
  }
}

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
  EXPECT_EQ(
      ErrorOf("Name,Pr\xEAs\n"),
      "the header is not UTF-8: byte 8 of it. Its encoding is probably Latin-1: convert it, for "
      "example with iconv -f LATIN1 -t UTF-8");
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

TEST_F(HeaderTest, RefusesLinesThatEndWithCrCrLf) {
  EXPECT_THAT(ErrorOf("Name,Price\r\r\n1,2\r\r\n"), HasSubstr("end with CR CR LF"));
}

TEST_F(HeaderTest, NamesTheDelimiterThatTheFileSeemsToHave) {
  EXPECT_EQ(ErrorOf("Id;Name;Price\n"),
            "the input has no column 'Price'; the file seems to have another delimiter: write "
            "`delimiter: \";\"` below `input` in the job file (its columns: 'Id;Name;Price')");
  EXPECT_THAT(ErrorOf("Id\tName\tPrice\n"), HasSubstr("write `delimiter: \"\\t\"`"));
}

// A spreadsheet's header with a line end in a name: with the job's comma, its first line is one
// name, and with the semicolon that was meant, half a record. The reader looked for its end for
// ever, and took all memory.
TEST_F(HeaderTest, NamesTheDelimiterOfAHeaderWhoseFirstLineOpensAQuote) {
  EXPECT_THAT(ErrorOf("Price;\"Amount\nin EUR\";Name\n"), HasSubstr("write `delimiter: \";\"`"));
  EXPECT_THAT(ErrorOf("Id;\"a\"b;Price\n"), HasSubstr("write `delimiter: \";\"`"));
  format_.delimiter = '|';
  EXPECT_THAT(ErrorOf("\"x\n,\"\"y\"\n"), HasSubstr("no column 'Price'"));
  EXPECT_THAT(ErrorOf("\"\"\n"), HasSubstr("no column"));
}

TEST_F(HeaderTest, TakesQuotesForTextWhereThereAreNone) {
  format_.quotes = false;
  format_.columns = {{"name", "\"Name"}};
  EXPECT_THAT(Read("\"Name,Price\n\"1\",2\n")->fields, ElementsAre("\"Name", "Price"));
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
