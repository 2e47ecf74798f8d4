// SPDX-License-Identifier: Apache-2.0
#include "cli/output/format.h"

#include <random>
#include <sstream>
#include <string>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/fakes/base/test_seed.h"
#include "yaml-cpp/yaml.h"

namespace muster::cli {

namespace {

std::string Print(const Table& table) {
  std::ostringstream out;
  table.PrintTo(out);
  return out.str();
}

TEST(TableTest, PadsColumnsToTheirWidestCellAndAlignsNumbersRight) {
  Table table;
  table.AddColumn("country");
  table.AddColumn("units", Align::kRight);
  table.AddRow({"EIRE", "5"});
  table.AddRow({"Österreich", "12345"});
  EXPECT_EQ(Print(table),
            "COUNTRY     UNITS\n"
            "EIRE            5\n"
            "Österreich  12345\n");
}

TEST(TableTest, DataCannotMoveTheCursor) {
  Table table;
  table.AddColumn("name");
  table.AddRow({"evil\x1b[2J\n"});
  EXPECT_EQ(Print(table), "NAME\nevil?[2J?\n");
}

TEST(TableTest, QuotesCsvFieldsThatNeedIt) {
  Table table;
  table.AddColumn("name");
  table.AddColumn("note");
  table.AddRow({"a,b", "say \"hi\""});
  std::ostringstream out;
  table.PrintCsvTo(out);
  EXPECT_EQ(out.str(), "name,note\n\"a,b\",\"say \"\"hi\"\"\"\n");
}

TEST(TableTest, GroupsDigitsByThousands) {
  EXPECT_EQ(Grouped(0), "0");
  EXPECT_EQ(Grouped(999), "999");
  EXPECT_EQ(Grouped(1000), "1,000");
  EXPECT_EQ(Grouped(541909), "541,909");
  EXPECT_EQ(Grouped(1234567890), "1,234,567,890");
}

TEST(TableTest, CountsOneThingInTheSingular) {
  EXPECT_EQ(Counted(0, "item"), "0 items");
  EXPECT_EQ(Counted(1, "item"), "1 item");
  EXPECT_EQ(Counted(541909, "item"), "541,909 items");
}

using nlohmann::ordered_json;

std::string Yaml(const ordered_json& json) { return Structured(json, OutputFormat::kYaml); }

// Returns the value that a reader sees in unquoted text: a JSON value, or otherwise a string.
ordered_json PlainValue(const std::string& text) {
  ordered_json value = ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
  return value.is_discarded() || value.is_structured() ? ordered_json(text) : value;
}

ordered_json ReadBack(const YAML::Node& node) {
  if (node.IsSequence()) {
    ordered_json items = ordered_json::array();
    for (const YAML::Node& item : node) items.push_back(ReadBack(item));
    return items;
  }
  if (node.IsMap()) {
    ordered_json object = ordered_json::object();
    for (const auto& pair : node) object[pair.first.Scalar()] = ReadBack(pair.second);
    return object;
  }
  if (node.IsNull()) return nullptr;
  const bool is_quoted = node.Tag() == "!";
  return is_quoted ? ordered_json(node.Scalar()) : PlainValue(node.Scalar());
}

TEST(StructuredTest, WritesJsonOnOneLine) {
  EXPECT_EQ(Structured({{"a", 1}, {"b", {true, nullptr}}}, OutputFormat::kJson),
            "{\"a\":1,\"b\":[true,null]}\n");
}

TEST(StructuredTest, WritesYamlInBlocks) {
  const ordered_json batch = {{"batch", 7},
                              {"job", "retail"},
                              {"rate", 0.5},
                              {"versions", {{"1.2", 3}, {"on", 4}}},
                              {"groups",
                               {{{"name", "by_day"}, {"rows", ordered_json::array()}},
                                {{"name", "a b"}, {"keys", {"x", {"y", "z"}}}}}},
                              {"nothing", nullptr},
                              {"none", ordered_json::object()}};
  EXPECT_EQ(Yaml(batch),
            "batch: 7\njob: retail\nrate: 0.5\nversions:\n  \"1.2\": 3\n  \"on\": 4\ngroups:\n"
            "  - name: by_day\n    rows: []\n  - name: \"a b\"\n    keys:\n      - x\n"
            "      - - \"y\"\n        - z\nnothing: null\nnone: {}\n");
  EXPECT_EQ(Yaml(ordered_json::array()), "[]\n");
  EXPECT_EQ(Yaml({{{"a", 1}}, {{"b", 2}}}), "- a: 1\n- b: 2\n");
}

TEST(StructuredTest, QuotesWhatAReaderCouldTakeForSomethingElse) {
  for (const char* text :
       {"",      "true",     "No",         "NULL", "~",   "12",   "1.25", "-1", "0x1f", "1e5",
        "1_000", "12:30:45", "2011-12-09", ".inf", "- a", "a: b", "a #b", "#",  "&a",   "*a",
        "!a",    "%a",       "@a",         "`a",   "{a}", "[a]",  " a",   "a ", "'a'",  "\"a\"",
        "a\\b",  "=",        "<<",         "a\nb", "\t",  "?",    ":"}) {
    const std::string yaml = Yaml({{"text", text}});
    EXPECT_EQ(yaml, "text: " + ordered_json(text).dump() + "\n");
    EXPECT_EQ(ReadBack(YAML::Load(yaml)), ordered_json({{"text", text}})) << yaml;
  }
  for (const char* word : {"retail", "by_day", "nats-1", "Mix9", "a.b/c"}) {
    EXPECT_EQ(YamlScalar(word), word);
  }
}

TEST(StructuredTest, EscapesWhatYamlDoesNotTakeAsItIs) {
  EXPECT_EQ(YamlScalar("\x7f \xc2\x85\xc2\x9b \xe2\x80\xa8 \xef\xbf\xbf \x01"),
            "\"\\x7f \\x85\\x9b \\u2028 \\uffff \\u0001\"");
  EXPECT_EQ(YamlScalar("é… 😀"), "\"é… 😀\"");
  EXPECT_EQ(YamlScalar("\xff"), "\"\xef\xbf\xbd\"");
}

TEST(StructuredTest, GivesLargeNumbersADotSoThatTheyStayNumbers) {
  EXPECT_EQ(YamlScalar(1e20), "1.0e+20");
  EXPECT_EQ(YamlScalar(1.5e-9), "1.5e-09");
  EXPECT_EQ(YamlScalar(uint64_t{18446744073709551615u}), "18446744073709551615");
}

ordered_json MakeUp(std::mt19937& random, int depth) {
  static const std::string kBytes = "aZ09 :-#'\"\\\n\t{}[],&*!|>%@`~=?.\x7f\x01";
  const auto text = [&random] {
    std::string made;
    for (auto left = random() % 6; left > 0; --left) made += kBytes[random() % kBytes.size()];
    return made;
  };
  switch (random() % (depth > 0 ? 7 : 5)) {
    case 0:
      return text();
    case 1:
      return static_cast<int64_t>(random()) - (int64_t{1} << 31);
    case 2:
      return static_cast<double>(random()) / 7.0;
    case 3:
      return random() % 2 == 0;
    case 4:
      return nullptr;
    case 5: {
      ordered_json items = ordered_json::array();
      for (auto left = random() % 4; left > 0; --left) items.push_back(MakeUp(random, depth - 1));
      return items;
    }
    default: {
      ordered_json object = ordered_json::object();
      for (auto left = random() % 4; left > 0; --left) object[text()] = MakeUp(random, depth - 1);
      return object;
    }
  }
}

TEST(StructuredTest, SaysTheSameAsYamlAsItDoesAsJson) {
  const uint32_t seed = base::testing::TestSeed();
  std::mt19937 random(seed);
  for (int i = 0; i < 2000; ++i) {
    const ordered_json json = MakeUp(random, 4);
    const std::string yaml = Yaml(json);
    ASSERT_EQ(ReadBack(YAML::Load(yaml)), json) << yaml << "MUSTER_TEST_SEED=" << seed;
  }
}

}  // namespace

}  // namespace muster::cli
