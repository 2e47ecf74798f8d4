// SPDX-License-Identifier: Apache-2.0

// Random inputs, read by the real code and by the reference reader.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/text.h"
#include "muster/input/byte_scan.h"
#include "muster/input/byte_source.h"
#include "muster/input/record_parser.h"
#include "muster/input/slice_reader.h"
#include "tests/fakes/base/test_seed.h"
#include "tests/fakes/input/reference_reader.h"

namespace muster::input {
namespace {

class InputPropertyTest : public ::testing::Test {
 protected:
  InputPropertyTest() : seed_(base::testing::TestSeed()), random_(seed_) {}

  size_t Below(size_t limit) { return static_cast<size_t>(random_() % limit); }

  // Returns short lines of the significant bytes, with more or fewer quotes.
  std::string RandomText(size_t length) {
    const std::string rich = "a,\"\n\r\"\n,";
    const std::string poor = "abc,,abc\nab,c\nab\n\r";
    const std::string& few = Below(2) == 0 ? rich : poor;
    std::string text;
    while (text.size() < length) text += few[Below(few.size())];
    for (size_t quotes = Below(4); &few == &poor && quotes > 0 && !text.empty(); --quotes) {
      text[Below(text.size())] = '"';
    }
    return text;
  }

  // Returns rows of `fields` fields, many of them quoted, all of them valid.
  std::string RandomCsv(size_t rows, size_t fields) {
    const std::vector<std::string> some = {"a",        "",     "\"b,c\"", "\"d\"\"e\"",
                                           "\"f\ng\"", "\"\"", "h i"};
    std::string text;
    for (size_t row = 0; row < rows; ++row) {
      for (size_t i = 0; i < fields; ++i) {
        absl::StrAppend(&text, i > 0 ? "," : "", some[Below(some.size())]);
      }
      text += Below(4) == 0 ? "\r\n" : "\n";
    }
    return text;
  }

  InputFormat RandomFormat() {
    InputFormat format;
    format.kind = Below(5) == 0 ? InputFormat::Kind::kLines : InputFormat::Kind::kCsv;
    format.max_record_bytes = 1 + Below(40);
    format.quotes = Below(4) != 0;
    format.multiline = Below(4) != 0;
    return format;
  }

  void ExpectSameSlices(const std::string& text, const InputFormat& format, SliceLimits limits) {
    const auto expected =
        SliceByReference(ReadByReference(text, format), limits.transactions, limits.max_bytes);
    const TextSource source(text);
    SliceReader reader(&source, format, limits, SliceStart{});
    for (const ReferenceSlice& slice : expected) {
      const auto next = *reader.Next();
      ASSERT_TRUE(next.has_value());
      SCOPED_TRACE(absl::StrCat("slice at ", slice.begin));
      ASSERT_EQ(next->offset, slice.begin);
      ASSERT_EQ(next->length, slice.end - slice.begin);
      ASSERT_EQ(next->transactions, slice.records);
      ASSERT_EQ(next->multiline.records, slice.multiline_records);
      ASSERT_EQ(next->multiline.lines, slice.multiline_lines);
      ASSERT_EQ(next->oversized, slice.oversized);
      ASSERT_EQ(next->data,
                slice.oversized ? "" : absl::string_view(text).substr(slice.begin, next->length));
    }
    ASSERT_FALSE((*reader.Next()).has_value());
  }

  // Returns the seed and the text.
  std::string Story(const std::string& text) const {
    return absl::StrCat("seed ", seed_, ", text \"", absl::CHexEscape(text), "\"");
  }

  const uint64_t seed_;
  std::mt19937_64 random_;
};

TEST_F(InputPropertyTest, SlicesAreThoseOfTheReferenceWhateverIsReadAtOnce) {
  for (int round = 0; round < 5000 && !HasFailure(); ++round) {
    const std::string text = Below(2) == 0 ? RandomText(Below(300)) : RandomCsv(Below(20), 3);
    SCOPED_TRACE(Story(text));
    SliceLimits limits;
    limits.transactions = static_cast<uint32_t>(1 + Below(5));
    limits.max_bytes = Below(60);
    limits.read_bytes = 1 + Below(200);
    const InputFormat format = RandomFormat();
    SCOPED_TRACE(absl::StrCat("format ", static_cast<int>(format.kind), ", at most ",
                              format.max_record_bytes, " a record, ", limits.transactions, " or ",
                              limits.max_bytes, " a slice, reading ", limits.read_bytes));
    ExpectSameSlices(text, format, limits);
  }
}

TEST_F(InputPropertyTest, BetweenSlicesLieOnlyEmptyLines) {
  for (int round = 0; round < 1000 && !HasFailure(); ++round) {
    const std::string text = RandomText(Below(300));
    SCOPED_TRACE(Story(text));
    const InputFormat format = RandomFormat();
    const TextSource source(text);
    SliceReader reader(&source, format, {2, 30}, SliceStart{});
    std::string left_out;
    SliceStart last;
    for (auto slice = *reader.Next(); slice; slice = *reader.Next()) {
      left_out += text.substr(last.offset, slice->offset - last.offset);
      last = slice->next;
      ASSERT_EQ(last.offset, slice->offset + slice->length);
    }
    left_out += text.substr(last.offset);
    EXPECT_EQ(left_out.find_first_not_of("\r\n"), std::string::npos);
  }
}

TEST_F(InputPropertyTest, ReadingFromAnySliceGivesTheSameRest) {
  for (int round = 0; round < 300 && !HasFailure(); ++round) {
    const std::string text = RandomText(Below(300));
    SCOPED_TRACE(Story(text));
    const InputFormat format = RandomFormat();
    const TextSource source(text);
    SliceReader whole(&source, format, {2, 30}, SliceStart{});
    for (auto slice = *whole.Next(); slice; slice = *whole.Next()) {
      SliceReader again(&source, format, {2, 30}, {slice->offset, slice->first_line});
      const auto same = *again.Next();
      ASSERT_TRUE(same.has_value());
      ASSERT_EQ(same->length, slice->length);
      ASSERT_EQ(same->next.line, slice->next.line);
      ASSERT_EQ(
          same->next.line,
          1 + std::count(text.begin(), text.begin() + static_cast<int>(slice->next.offset), '\n') +
              (text[slice->next.offset - 1] == '\n' ? 0 : 1));
    }
  }
}

TEST_F(InputPropertyTest, RecordsAreThoseOfTheReferenceHoweverTheInputIsCut) {
  for (int round = 0; round < 3000 && !HasFailure(); ++round) {
    const size_t width = 1 + Below(3);
    const std::string text = Below(2) == 0 ? RandomText(Below(300)) : RandomCsv(Below(20), width);
    SCOPED_TRACE(Story(text));
    InputFormat format;
    format.max_record_bytes = 1 + Below(60);
    format.quotes = Below(4) != 0;
    format.multiline = Below(4) != 0;
    std::vector<int> positions;
    for (size_t i = 0; i < width; ++i) {
      positions.push_back(static_cast<int>(i));
      format.columns.push_back({absl::StrCat(i), absl::StrCat(i)});
    }
    std::vector<std::string> expected;
    for (const ReferenceRecord& r : ReadByReference(text, format)) {
      const bool sound = !r.oversized && !r.broken && !r.suspicious && r.fields.size() == width;
      expected.push_back(absl::StrCat(r.line, sound ? ": " + absl::StrJoin(r.fields, "|") : " -"));
    }
    const RecordParser parser(format, positions, static_cast<int>(width));
    const TextSource source(text);
    SliceReader reader(&source, format, {static_cast<uint32_t>(1 + Below(9)), Below(80)}, {});
    std::vector<std::string> got;
    ParsedRecords out;
    for (auto slice = *reader.Next(); slice; slice = *reader.Next()) {
      const size_t before = got.size();
      got.resize(before + slice->transactions, absl::StrCat(slice->first_line, " -"));
      if (slice->oversized) continue;
      // A copy of exactly its size, so that a sanitizer sees every step beyond it.
      const std::vector<char> exact(slice->data.begin(), slice->data.end());
      parser.Parse({exact.data(), exact.size()}, slice->first_line, &out);
      ASSERT_EQ(out.total(), slice->transactions);
      for (const RejectedRecord& r : out.rejected) {
        got[before + static_cast<size_t>(r.ordinal)] = absl::StrCat(r.line, " -");
      }
      for (size_t i = 0; i < out.records.size(); ++i) {
        got[before + static_cast<size_t>(out.records[i].ordinal)] =
            absl::StrCat(out.records[i].line, ": ", absl::StrJoin(out.Fields(i), "|"));
      }
    }
    ASSERT_EQ(got, expected);
  }
}

TEST_F(InputPropertyTest, AnyBytesGiveEachTransactionOneVerdict) {
  const std::string seeds = "{\"a\":[1.5e3,\"\\u00e9\\\"\",null,true,{}],\"b\":-0}";
  for (int round = 0; round < 5000 && !HasFailure(); ++round) {
    std::string text;
    for (size_t i = Below(200); i > 0; --i) {
      text += Below(3) == 0 ? static_cast<char>(Below(256)) : seeds[Below(seeds.size())];
      if (Below(20) == 0) absl::StrAppend(&text, "\n", seeds);
    }
    SCOPED_TRACE(Story(text));
    InputFormat format;
    format.kind = static_cast<InputFormat::Kind>(Below(3));
    format.columns = {{"a", "a"}, {"b", "b"}};
    const RecordParser parser(format, {1, 0}, static_cast<int>(2 * Below(2)));
    const TextSource source(text);
    SliceReader reader(&source, format, {3, 100}, {});
    ParsedRecords out;
    for (auto slice = *reader.Next(); slice; slice = *reader.Next()) {
      const std::vector<char> exact(slice->data.begin(), slice->data.end());
      parser.Parse({exact.data(), exact.size()}, slice->first_line, &out);
      ASSERT_EQ(out.total(), slice->transactions);
      ASSERT_EQ(out.fields.size(), 2 * out.records.size());
    }
  }
}

TEST_F(InputPropertyTest, ByteScanVisitsWhatASearchFinds) {
  for (int round = 0; round < 1000 && !HasFailure(); ++round) {
    const std::string text = RandomText(Below(300));
    SCOPED_TRACE(Story(text));
    ByteScan<2> scan(text, {'\n', '"'});
    size_t from = 0;
    for (size_t at = scan.Next();; at = scan.Next()) {
      ASSERT_EQ(at, text.find_first_of("\n\"", from));
      if (at == ByteScan<2>::kEnd) break;
      from = at + 1;
      if (Below(10) == 0) scan.Seek(from = Below(text.size() + 1));
    }
  }
}

TEST_F(InputPropertyTest, Utf8IsFoundBrokenWhereItWasBroken) {
  const std::vector<std::string> letters = {"a", "é", "€", "😀", "12345678"};
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (size_t i = Below(40); i > 0; --i) text += letters[Below(letters.size())];
    const size_t whole = text.size();
    EXPECT_EQ(base::FirstInvalidUtf8(text), whole) << Story(text);
    EXPECT_EQ(IsAscii(text), text.find_first_of("\xC3\xE2\xF0") == std::string::npos);
    text += "\xED\xA0\x80 and more";
    EXPECT_EQ(base::FirstInvalidUtf8(text), whole) << Story(text);
  }
}

}  // namespace
}  // namespace muster::input
