// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/rules/rules_file.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/os/temp_dir.h"

namespace muster::scaling::rules {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::filesystem::path kRoot = MUSTER_SOURCE_DIR;

std::string ReadAll(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::vector<std::filesystem::path> FilesIn(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path());
  }
  EXPECT_FALSE(files.empty());
  return files;
}

// Returns the texts of the "# expect: …" lines of a sample.
std::vector<std::string> Expectations(const std::string& text) {
  std::vector<std::string> expected;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::ConsumePrefix(&line, "# expect: ")) expected.emplace_back(line);
  }
  return expected;
}

std::string MistakesOf(const std::string& text) {
  return std::string(ParseRules(text, "rules.yaml").status().message());
}

TEST(RulesFileTest, AcceptsEveryValidSample) {
  for (const auto& path : FilesIn(kRoot / "tests/rules/valid")) {
    const auto rules = LoadRulesFile(path);
    EXPECT_TRUE(rules.ok()) << rules.status();
  }
}

TEST(RulesFileTest, AcceptsEveryExample) {
  for (const auto& path : FilesIn(kRoot / "examples/rules")) {
    const auto rules = LoadRulesFile(path);
    EXPECT_TRUE(rules.ok()) << rules.status();
  }
}

TEST(RulesFileTest, NamesEachMistakeOfEveryInvalidSampleAndNoOther) {
  for (const auto& path : FilesIn(kRoot / "tests/rules/invalid")) {
    SCOPED_TRACE(path);
    const auto rules = LoadRulesFile(path);
    ASSERT_FALSE(rules.ok());
    const std::string message(rules.status().message());
    const std::vector<std::string> expected = Expectations(ReadAll(path));
    for (const std::string& text : expected) EXPECT_THAT(message, HasSubstr(text));
    for (absl::string_view line : absl::StrSplit(message, '\n')) {
      EXPECT_TRUE(absl::StartsWith(line, absl::StrCat(path.string(), ":"))) << line;
      EXPECT_TRUE(
          std::any_of(expected.begin(), expected.end(),
                      [&](const std::string& text) { return absl::StrContains(line, text); }))
          << "not expected: " << line;
    }
  }
}

TEST(RulesFileTest, ReadsEveryKey) {
  const Rules rules = *LoadRulesFile(kRoot / "tests/rules/valid/everything.yaml");
  EXPECT_EQ(rules.mode, Mode::kNotify);
  ASSERT_EQ(rules.targets.size(), 2u);
  const Target& billing = *rules.FindTarget("billing");
  EXPECT_EQ(billing.kind, "statefulset");
  EXPECT_EQ(billing.name, "processor");
  EXPECT_THAT(billing.queues, ElementsAre("in-0", "acme/in-1"));
  EXPECT_EQ(billing.sla_max, absl::Minutes(5));
  EXPECT_EQ(billing.sla_aim, absl::Minutes(1));
  EXPECT_EQ(billing.patience, 0.25);
  EXPECT_TRUE(billing.forecast);
  EXPECT_FALSE(rules.FindTarget("mail")->forecast);
  EXPECT_EQ(billing.range, (Range{1, 100}));
  EXPECT_EQ(rules.FindTarget("mail")->range, (Range{0, 0}));
  EXPECT_EQ(billing.actuated_by, ActuatedBy::kAgent);
  EXPECT_EQ(rules.FindTarget("mail")->actuated_by, ActuatedBy::kExternal);
  ASSERT_EQ(rules.constraints.size(), 5u);
  const Constraint& month_end = rules.constraints[1];
  EXPECT_EQ(month_end.name, "month-end");
  EXPECT_EQ(month_end.rank, 20);
  EXPECT_EQ(month_end.range, (Range{5, 100}));
  EXPECT_EQ(month_end.budget, 900);
  EXPECT_FALSE(month_end.standby.has_value());
  EXPECT_TRUE(month_end.prewarm.by_cold_start);
  EXPECT_EQ(month_end.when->zone.name(), "Europe/Paris");
  EXPECT_EQ(month_end.when->lasts, absl::Hours(8));
  EXPECT_EQ(std::get<DailyStart>(month_end.when->start).minute, 480);
  EXPECT_EQ(std::get<DailyStart>(rules.constraints[2].when->start).days.size(), 4u);
  EXPECT_FALSE(rules.constraints[2].when->lasts.has_value());
  EXPECT_EQ(rules.constraints[3].prewarm.lead, absl::Minutes(10));
  EXPECT_EQ(rules.constraints[4].standby, 20);
  EXPECT_TRUE(std::holds_alternative<CronFields>(rules.constraints[4].when->start));
  ASSERT_EQ(rules.operands.size(), 5u);
  EXPECT_EQ(rules.FindOperand("grow")->queue, "acme/in-1");
  EXPECT_EQ(rules.FindOperand("grow")->target, "billing");
  EXPECT_EQ(rules.FindOperand("grow")->aggregate, Aggregate::kGrowth);
  EXPECT_EQ(rules.FindOperand("grow")->over, absl::Minutes(5));
  EXPECT_EQ(rules.FindOperand("busiest")->metric, Metric::kThrottled);
  ASSERT_EQ(rules.reactions.size(), 4u);
  EXPECT_EQ(rules.reactions[0].condition.text(), "age > 0.5*sla and grow > 0");
  EXPECT_EQ(std::get<Scale>(rules.reactions[0].action).amount, 25);
  EXPECT_TRUE(std::get<Scale>(rules.reactions[0].action).is_percent);
  EXPECT_EQ(std::get<SetReplicas>(rules.reactions[1].action).replicas, 7);
  EXPECT_EQ(std::get<Hold>(rules.reactions[2].action), Hold::kUp);
  EXPECT_EQ(std::get<Scale>(rules.reactions[3].action).amount, -1);
  EXPECT_EQ(rules.stabilizer.up_cooldown, absl::Seconds(30));
  EXPECT_EQ(rules.stabilizer.idle_hold, absl::Minutes(5));
  EXPECT_EQ(rules.on_metric_loss.after, 5);
}

TEST(RulesFileTest, FillsInTheDefaults) {
  const Rules rules = *LoadRulesFile(kRoot / "tests/rules/valid/smallest.yaml");
  EXPECT_EQ(rules.mode, Mode::kAct);
  EXPECT_EQ(rules.targets[0].range, (Range{0, 20}));
  EXPECT_EQ(rules.targets[0].patience, 0.5);
  EXPECT_FALSE(rules.targets[0].sla_max.has_value());
  EXPECT_EQ(rules.stabilizer.up_cooldown, absl::ZeroDuration());
  EXPECT_FALSE(rules.stabilizer.idle_hold.has_value());
  EXPECT_EQ(rules.on_metric_loss.after, 3);
  EXPECT_EQ(rules.on_metric_loss.keep, MetricLoss::Keep::kMaxOfCurrentAndFloor);
}

// Between braces YAML cuts the old form at its comma.
TEST(RulesFileTest, ReadsTheOldFormOfKeepMaxAsItIsMeantAndWarnsOfIt) {
  const std::string targets = "targets: {t: {kind: process, name: p, queues: [q]}}\n";
  for (const char* old :
       {"{after: 7, keep: max(current, floor)}", "\n  after: 7\n  keep: max(current, floor)",
        "{after: 7, keep: 'max(current, floor)'}"}) {
    const auto rules = ParseRules(absl::StrCat(targets, "on_metric_loss: ", old, "\n"), "r.yaml");
    ASSERT_TRUE(rules.ok()) << rules.status();
    EXPECT_EQ(rules->on_metric_loss.keep, MetricLoss::Keep::kMaxOfCurrentAndFloor);
    EXPECT_EQ(rules->on_metric_loss.after, 7);
    EXPECT_THAT(WarningsOf(*rules, "r.yaml"),
                ElementsAre(HasSubstr("max(current, floor) is now written max")));
  }
}

TEST(RulesFileTest, WarnsOfNothingElse) {
  for (const char* keep : {"max", "current", "floor"}) {
    const auto rules =
        ParseRules(absl::StrCat("targets: {t: {kind: process, name: p, queues: [q]}}\n",
                                "on_metric_loss: {keep: ", keep, "}\n"),
                   "r.yaml");
    ASSERT_TRUE(rules.ok()) << rules.status();
    EXPECT_TRUE(rules->warnings.empty()) << keep;
  }
  EXPECT_TRUE(LoadRulesFile(kRoot / "tests/rules/valid/everything.yaml")->warnings.empty());
}

TEST(RulesFileTest, SaysWhyAFileCannotBeRead) {
  const os::TempDir dir;
  EXPECT_EQ(LoadRulesFile(dir / "none.yaml").status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(LoadRulesFile(dir.path()).status().message()), HasSubstr("is a folder"));
  std::ofstream(dir / "large.yaml") << std::string(kMaxRulesFileBytes + 1, '#');
  EXPECT_THAT(std::string(LoadRulesFile(dir / "large.yaml").status().message()),
              HasSubstr("at most 1048576 are allowed"));
}

TEST(RulesFileTest, RefusesWhatIsNoYamlAndComesToAnEnd) {
  EXPECT_THAT(MistakesOf("targets: [a\n"), HasSubstr("rules.yaml:2:1: not YAML: "));
  EXPECT_THAT(MistakesOf("targets: \xFF\n"), HasSubstr("not UTF-8 text"));
  EXPECT_THAT(MistakesOf(std::string(500'000, '[')), HasSubstr("not YAML"));
  EXPECT_FALSE(MistakesOf("targets: &a {b: *a}\nconstraints: &c [*c]\n").empty());
  EXPECT_EQ(MistakesOf(","), "rules.yaml:1:1: must be one YAML document, not several");
}

TEST(RulesFileTest, ReportsABoundedNumberOfMistakes) {
  std::string text = "targets: {a: {kind: process, name: p, queues: [q]}}\nconstraints:\n";
  for (int i = 0; i < 80; ++i) absl::StrAppend(&text, "- {name: c", i, ", rank: 1, target: b}\n");
  EXPECT_THAT(MistakesOf(text), HasSubstr("\nand 110 more"));
}

// Cuts a piece out of a valid file or doubles it: the parser never crashes, and names the place of
// each mistake.
TEST(RulesFileTest, AnswersAnyCutOfARealFileWithRulesOrMistakes) {
  const std::string text = ReadAll(kRoot / "tests/rules/valid/reference.yaml");
  for (size_t at = 0; at + 7 < text.size(); at += 3) {
    for (const std::string& broken :
         {text.substr(0, at) + text.substr(at + 7), text.substr(0, at + 7) + text.substr(at)}) {
      const auto rules = ParseRules(broken, "r");
      if (rules.ok()) continue;
      for (const absl::string_view line : absl::StrSplit(rules.status().message(), '\n')) {
        ASSERT_TRUE(absl::StartsWith(line, "r:")) << line;
      }
    }
  }
}

// Returns the schema at `place`: in "targets{}.sla", "{}" steps into each entry of targets, and
// ".sla" into its key.
nlohmann::json SchemaAt(const nlohmann::json& root, const std::string& place) {
  nlohmann::json at = root;
  if (place.empty()) return at;
  for (const absl::string_view part : absl::StrSplit(place, '.')) {
    const std::string name = absl::StrReplaceAll(part, {{"{}", ""}, {"[]", ""}});
    at = at.at("properties").at(name);
    if (absl::EndsWith(part, "{}")) at = at.at("additionalProperties");
    if (absl::EndsWith(part, "[]")) at = at.at("items");
    while (at.contains("$ref")) {
      at = root.at(nlohmann::json::json_pointer(at["$ref"].get<std::string>().substr(1)));
    }
  }
  return at;
}

TEST(RulesSchemaTest, KnowsTheSameKeysAsTheParser) {
  const auto schema = nlohmann::json::parse(ReadAll(kRoot / "schema/rules.schema.json"));
  for (const auto& [place, keys] : RulesFileKeys()) {
    SCOPED_TRACE(place);
    std::set<std::string> known;
    const nlohmann::json at = SchemaAt(schema, place);
    for (const auto& property : at.at("properties").items()) known.insert(property.key());
    EXPECT_EQ(known, std::set<std::string>(keys.begin(), keys.end()));
  }
}

}  // namespace
}  // namespace muster::scaling::rules
