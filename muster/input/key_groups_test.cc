// SPDX-License-Identifier: Apache-2.0
#include "muster/input/key_groups.h"

#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/base/test_seed.h"

namespace muster::input {
namespace {

using ::testing::ElementsAre;

struct Seen {
  std::string key;
  std::string text;
  std::vector<int64_t> lines;
};

InputFormat Csv() {
  InputFormat format;
  format.columns = {{"id", std::string("id")}, {"n", std::string("n")}};
  return format;
}

std::vector<Seen> Read(const std::string& text, const InputFormat& format, SliceLimits limits = {},
                       size_t window = kKeyWindowBytes) {
  const TextSource source(text);
  const Header header = *ReadHeader(source, format);
  KeyGroupReader reader(&source, format, header, 0, limits, header.data, window);
  std::vector<Seen> all;
  for (const KeyedWindow* found = *reader.Next(); found != nullptr; found = *reader.Next()) {
    for (const KeyedSlice& slice : found->slices) {
      const bool has_key = slice.key.has_value();
      all.push_back({slice.oversized ? "(oversized)"
                     : has_key       ? std::string(*slice.key)
                                     : "(none)",
                     slice.oversized ? "" : found->TextOf(slice),
                     slice.oversized ? std::vector<int64_t>() : found->LinesOf(slice)});
    }
  }
  return all;
}

std::vector<std::string> TextsOf(const std::vector<Seen>& seen) {
  std::vector<std::string> texts;
  for (const Seen& one : seen) texts.push_back(absl::StrCat(one.key, ": ", one.text));
  return texts;
}

TEST(KeyGroupsTest, GivesTheRecordsOfAKeyInTheirOrder) {
  const std::vector<Seen> seen = Read("id,n\na,1\nb,1\na,2\nc,1\nb,2\na,3\n", Csv());
  EXPECT_THAT(TextsOf(seen), ElementsAre("a: a,1\na,2\na,3\n", "b: b,1\nb,2\n", "c: c,1\n"));
  EXPECT_THAT(seen[0].lines, ElementsAre(2, 4, 7));
  EXPECT_THAT(seen[1].lines, ElementsAre(3, 6));
}

TEST(KeyGroupsTest, ReadsAQuotedKeyAsThePlainOne) {
  EXPECT_THAT(TextsOf(Read("id,n\na,1\n\"a\",\"2\nlong\"\na,3\n", Csv())),
              ElementsAre("a: a,1\n\"a\",\"2\nlong\"\na,3\n"));
}

TEST(KeyGroupsTest, ReadsAKeyOfJson) {
  InputFormat format;
  format.kind = InputFormat::Kind::kJsonl;
  format.columns = {{"id", std::string("id")}};
  const std::string a1 = "{\"id\":\"a\",\"n\":1}\n", b = "{\"id\":7}\n", a2 = "{\"id\":\"a\"}\n";
  EXPECT_THAT(TextsOf(Read(a1 + b + a2 + "nonsense\n", format)),
              ElementsAre("a: " + a1 + a2, "7: " + b, "(none): nonsense\n"));
}

TEST(KeyGroupsTest, SplitsAKeyWithMoreRecordsThanASliceHas) {
  EXPECT_THAT(TextsOf(Read("id,n\na,1\na,2\nb,1\na,3\nb,2\na,4\na,5\n", Csv(), {2, 1000})),
              ElementsAre("a: a,1\na,2\n", "b: b,1\nb,2\n", "a: a,3\na,4\n", "a: a,5\n"));
  EXPECT_THAT(TextsOf(Read("id,n\na,1\na,2\na,3\n", Csv(), {500, 9})),
              ElementsAre("a: a,1\na,2\n", "a: a,3\n"));
}

TEST(KeyGroupsTest, ReadsOneWindowAfterTheOther) {
  EXPECT_THAT(TextsOf(Read("id,n\na,1\nb,1\na,2\nb,2\na,3\n", Csv(), {}, 16)),
              ElementsAre("a: a,1\na,2\n", "b: b,1\nb,2\n", "a: a,3\n"));
}

TEST(KeyGroupsTest, KeepsARecordWithAStrayQuoteApart) {
  EXPECT_THAT(
      TextsOf(Read("id,n\na,1\nb,\"x\nshort\na,2\nc,\"y\n", Csv())),
      ElementsAre("a: a,1\na,2\n", "(none): b,\"x\n", "(none): short\n", "(none): c,\"y\n"));
}

TEST(KeyGroupsTest, PassesARecordByThatIsTooLong) {
  InputFormat format = Csv();
  format.max_record_bytes = 8;
  EXPECT_THAT(TextsOf(Read("id,n\na,1\na,123456789\na,2\n", format)),
              ElementsAre("a: a,1\n", "(oversized): ", "a: a,2\n"));
}

// What one slice after the other gives is what the input gives: each record once, with its line,
// and those of a key in their order.
class KeyGroupsPropertyTest : public ::testing::Test {
 protected:
  KeyGroupsPropertyTest() : seed_(base::testing::TestSeed()), random_(seed_) {}

  size_t Below(size_t limit) { return static_cast<size_t>(random_() % limit); }

  std::string RandomCsv() {
    const std::vector<std::string> fields = {"a",           "b", "\"a\"", "\"c\nd\"",
                                             "\"x,\"\"y\"", "",  "\"e"};
    std::string text = "id,n\n";
    for (size_t row = 0, rows = Below(60); row < rows; ++row) {
      absl::StrAppend(&text, fields[Below(fields.size())], ",", row, Below(20) == 0 ? ",extra" : "",
                      Below(9) == 0 ? "\r\n" : "\n", Below(9) == 0 ? "\n" : "");
    }
    if (Below(2) == 0 && text.size() > 6) text.pop_back();
    return text;
  }

  const uint64_t seed_;
  std::mt19937_64 random_;
};

using Records = std::map<int64_t, std::vector<std::string>>;  // by line; a rejected one is empty

Records Parsed(const RecordParser& parser, const std::string& text,
               const std::vector<int64_t>* lines) {
  ParsedRecords parsed;
  parser.Parse(text, 2, &parsed);
  Records records;
  const auto line = [&](const auto& record) {
    return lines == nullptr ? record.line : lines->at(static_cast<size_t>(record.ordinal));
  };
  for (size_t i = 0; i < parsed.records.size(); ++i) {
    const auto fields = parsed.Fields(i);
    records[line(parsed.records[i])] = {fields.begin(), fields.end()};
  }
  for (const RejectedRecord& rejected : parsed.rejected) records[line(rejected)] = {};
  return records;
}

TEST_F(KeyGroupsPropertyTest, HoldsEachRecordOnceAndAKeysRecordsInOrder) {
  for (int round = 0; round < 3000 && !HasFailure(); ++round) {
    const std::string text = RandomCsv();
    SCOPED_TRACE(absl::StrCat("seed ", seed_, ", text \"", absl::CHexEscape(text), "\""));
    InputFormat format = Csv();
    format.max_record_bytes = 200;
    const TextSource source(text);
    const Header header = *ReadHeader(source, format);
    const RecordParser parser(format, header);
    const Records expected = Parsed(parser, text.substr(header.data.offset), nullptr);
    const SliceLimits limits{static_cast<uint32_t>(1 + Below(6)), 1 + Below(80)};
    Records seen;
    std::map<std::string, int64_t> last_line;
    for (const Seen& slice : Read(text, format, limits, 1 + Below(300))) {
      for (const auto& [line, fields] : Parsed(parser, slice.text, &slice.lines)) {
        EXPECT_TRUE(seen.emplace(line, fields).second) << "line " << line;
        if (fields.empty()) continue;
        EXPECT_EQ(fields[0], slice.key);
        EXPECT_GT(line, std::exchange(last_line[slice.key], line));
      }
    }
    EXPECT_EQ(seen, expected);
  }
}

// What a repair needs: a window that is grouped again from its start has the same slices.
TEST_F(KeyGroupsPropertyTest, GroupsAWindowAgainAsItDidBefore) {
  for (int round = 0; round < 500 && !HasFailure(); ++round) {
    const std::string text = RandomCsv();
    SCOPED_TRACE(absl::StrCat("seed ", seed_, ", text \"", absl::CHexEscape(text), "\""));
    const TextSource source(text);
    const Header header = *ReadHeader(source, Csv());
    const size_t window = 1 + Below(200);
    KeyGroupReader all(&source, Csv(), header, 0, {3, 60}, header.data, window);
    uint64_t offset = 0;
    for (const KeyedWindow* found = *all.Next(); found != nullptr; found = *all.Next()) {
      KeyGroupReader again(&source, Csv(), header, 0, {3, 60}, found->start, window);
      const KeyedWindow* const same = *again.Next();
      ASSERT_NE(same, nullptr);
      ASSERT_EQ(same->slices.size(), found->slices.size());
      for (size_t i = 0; i < found->slices.size(); ++i) {
        EXPECT_EQ(same->TextOf(same->slices[i]), found->TextOf(found->slices[i]));
        EXPECT_EQ(same->slices[i].offset, found->slices[i].offset);
        EXPECT_GE(found->slices[i].offset, offset);
        offset = found->slices[i].offset + found->slices[i].length;
      }
      EXPECT_EQ(offset, found->next.offset);
    }
  }
}

}  // namespace
}  // namespace muster::input
