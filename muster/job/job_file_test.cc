// SPDX-License-Identifier: Apache-2.0
#include "muster/job/job_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "muster/job/limits.h"
#include "muster/os/temp_dir.h"
#include "muster/yaml/problems.h"

namespace muster::job {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

const std::filesystem::path kRoot = MUSTER_SOURCE_DIR;

std::string ReadAll(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::vector<std::filesystem::path> Samples(const std::string& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(kRoot / "tests/job" / folder)) {
    files.push_back(entry.path());
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

std::string ErrorOf(const std::string& text) {
  return std::string(ParseJob(text, "job.yaml").status().message());
}

TEST(JobFileTest, AcceptsEveryValidSample) {
  for (const auto& path : Samples("valid")) {
    const auto job = LoadJobFile(path);
    EXPECT_TRUE(job.ok()) << job.status();
  }
}

TEST(JobFileTest, NamesEachMistakeOfEveryInvalidSampleAndNoOther) {
  for (const auto& path : Samples("invalid")) {
    const auto job = LoadJobFile(path);
    ASSERT_FALSE(job.ok()) << path;
    const std::string message(job.status().message());
    const std::vector<std::string> expected = Expectations(ReadAll(path));
    for (const std::string& text : expected) EXPECT_THAT(message, HasSubstr(text)) << path;
    for (absl::string_view line : absl::StrSplit(message, '\n')) {
      EXPECT_TRUE(absl::StartsWith(line, absl::StrCat(path.string(), ":"))) << line;
      EXPECT_TRUE(
          std::any_of(expected.begin(), expected.end(),
                      [&](const std::string& text) { return absl::StrContains(line, text); }))
          << "not expected: " << line;
    }
  }
}

// A key may contain a line break, and is part of the path to a mistake below it; the YAML reader
// quotes unreadable text as it is.
TEST(JobFileTest, SaysEachMistakeInOneShortPrintableLineWhateverTheFileHolds) {
  const std::string job = "name: a\ninput: {format: lines}\ngroups: [{name: g, keys: [k], ";
  const std::string broken_key =
      ErrorOf(job + "measures: {\"m\\nn\": float}}]\nhandler: {linked: h}\n");
  EXPECT_THAT(broken_key, HasSubstr("job.yaml:3:50: groups[0].measures.m?n: must be int"));
  EXPECT_EQ(std::count(broken_key.begin(), broken_key.end(), '\n'), 1) << broken_key;
  const std::string nul = ErrorOf(absl::StrCat("name: ", absl::string_view("\"\\\0\"", 4)));
  EXPECT_THAT(nul, HasSubstr("job.yaml:1:10: not YAML: ")) << nul;
  EXPECT_EQ(nul.find('\0'), std::string::npos) << nul;
  const std::string long_key =
      ErrorOf(absl::StrCat(job, "measures: {m: int}}]\nhandler: {command: [x], env: {",
                           std::string(5000, 'k'), ": []}}"));
  EXPECT_LT(long_key.size(), 2000u);
}

// yaml-cpp's LoadAll looped for ever here: it found one empty document after the other.
TEST(JobFileTest, ComesToAnEndWithACommaThatBelongsToNoList) {
  EXPECT_EQ(ErrorOf(","), "job.yaml:1:1: must be one YAML document, not several");
  EXPECT_EQ(ErrorOf(",`"), "job.yaml:1:1: must be one YAML document, not several");
}

TEST(JobFileTest, ReadsEveryKey) {
  const JobDefinition job = *LoadJobFile(kRoot / "tests/job/valid/everything.yaml");
  EXPECT_EQ(job.name, "bills-of_2024");
  EXPECT_EQ(job.input.kind, input::InputFormat::Kind::kCsv);
  EXPECT_TRUE(job.input.header);
  EXPECT_EQ(job.input.delimiter, ';');
  ASSERT_EQ(job.input.columns.size(), 2u);
  EXPECT_EQ(job.input.columns[1].name, "unit price");
  EXPECT_EQ(std::get<std::string>(job.input.columns[1].source), "2024");
  EXPECT_EQ(job.item.transactions, 100'000);
  EXPECT_EQ(job.item.max_bytes, size_t{8} << 20);
  EXPECT_EQ(job.order_by, 1);
  EXPECT_EQ(job.on_poison, OnPoison::kHold);
  const auto& command = std::get<CommandHandlerSpec>(job.handler);
  EXPECT_THAT(command.argv, ElementsAre("./bill", "-n", "5", "naïve"));
  EXPECT_EQ(command.deadline, absl::Seconds(90));
  EXPECT_EQ(command.version, "2.1");
  EXPECT_THAT(command.env, ElementsAre(Pair("LANG", "C"), Pair("_X9", "a b")));
  ASSERT_EQ(job.groups.size(), 2u);
  EXPECT_THAT(job.groups[0].keys, ElementsAre("day", "shop-id"));
  EXPECT_EQ(job.groups[0].measures[2].scale, 18);
  EXPECT_EQ(job.groups[0].measures[1].type, handler::MeasureSchema::Type::kInt);
  EXPECT_EQ(job.queue.partitions, 64);
  EXPECT_EQ(job.queue.visibility, absl::Minutes(90));
  EXPECT_EQ(job.queue.max_attempts, 1000);
  EXPECT_EQ(job.queue.max_drain, absl::Hours(2));
  EXPECT_EQ(job.tolerate.rejected_ppm, 500);
  EXPECT_EQ(job.sla_max, absl::Hours(24));
  EXPECT_EQ(job.retention,
            (ledger::Retention{absl::Hours(1), absl::Hours(24 * 7), absl::Hours(24 * 3650)}));
  EXPECT_EQ(job.upload_expires, absl::Hours(36));
}

TEST(JobFileTest, TakesVariablesAndArgumentsThatAreEmpty) {
  const JobDefinition job = *LoadJobFile(kRoot / "tests/job/valid/empty_texts.yaml");
  const auto& command = std::get<CommandHandlerSpec>(job.handler);
  EXPECT_THAT(command.argv, ElementsAre("sh", "-c", "", ""));
  EXPECT_THAT(command.env, ElementsAre(Pair("A", ""), Pair("B", "")));
}

TEST(JobFileTest, FillsInTheDefaults) {
  const JobDefinition job = *LoadJobFile(kRoot / "tests/job/valid/smallest.yaml");
  EXPECT_EQ(job.input.kind, input::InputFormat::Kind::kLines);
  ASSERT_EQ(job.input.columns.size(), 1u);
  EXPECT_EQ(job.input.columns[0].name, "line");
  EXPECT_EQ(job.item.transactions, 500);
  EXPECT_EQ(job.item.max_bytes, size_t{256} << 10);
  EXPECT_FALSE(job.order_by.has_value());
  EXPECT_EQ(job.on_poison, OnPoison::kSkip);
  EXPECT_EQ(job.queue.partitions, 1);
  EXPECT_EQ(job.queue.visibility, std::nullopt);
  EXPECT_EQ(job.queue.max_attempts, 5);
  EXPECT_EQ(job.queue.max_drain, std::nullopt);
  EXPECT_EQ(job.tolerate.rejected, 0);
  EXPECT_FALSE(job.tolerate.rejected_ppm.has_value());
  EXPECT_FALSE(job.sla_max.has_value());
  EXPECT_EQ(job.retention,
            (ledger::Retention{absl::Hours(24), absl::Hours(24 * 30), absl::Hours(24 * 400)}));
  EXPECT_EQ(job.upload_expires, absl::Hours(24));
}

TEST(JobFileTest, ARetentionFollowsWhatIsSaidOfIt) {
  const auto retention = [](const std::string& said) {
    return ParseJob(absl::StrCat("name: a\ninput: {format: lines}\nhandler: {linked: b}\n",
                                 "groups: [{name: g, keys: [k], measures: {n: int}}]\n",
                                 "retention: ", said, "\n"),
                    "job.yaml")
        ->retention;
  };
  constexpr absl::Duration kHour = absl::Hours(1);
  EXPECT_EQ(retention("{batch: 1h}"), (ledger::Retention{kHour, kHour, kHour}));
  EXPECT_EQ(retention("{items: 2h}"),
            (ledger::Retention{2 * kHour, 2 * kHour, ledger::Retention().batch}));
  EXPECT_EQ(retention("{items: 1000d}"),
            (ledger::Retention{24 * kHour, 24000 * kHour, 24000 * kHour}));
  EXPECT_EQ(retention("{content: 2h}"),
            (ledger::Retention{2 * kHour, ledger::Retention().items, ledger::Retention().batch}));
}

TEST(JobFileTest, TakesPositionsWithoutAHeader) {
  const JobDefinition job = *LoadJobFile(kRoot / "tests/job/valid/positions.yaml");
  EXPECT_FALSE(job.input.header);
  EXPECT_EQ(job.input.delimiter, '\t');
  EXPECT_EQ(std::get<int>(job.input.columns[0].source), 3);
}

TEST(JobFileTest, KnowsTheFolderThatCommandsRunIn) {
  const os::TempDir dir;
  const std::string text = ReadAll(kRoot / "tests/job/valid/smallest.yaml");
  std::ofstream(dir / "job.yaml") << text;
  const JobDefinition job = *LoadJobFile(dir / "job.yaml");
  EXPECT_EQ(job.folder, std::filesystem::canonical(dir.path()).string());
  EXPECT_EQ(job.text, text);
  EXPECT_EQ(ParseJob(text, "x")->folder, "");
}

TEST(JobFileTest, SaysWhyAFileCannotBeRead) {
  const os::TempDir dir;
  EXPECT_EQ(LoadJobFile(dir / "none.yaml").status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(LoadJobFile(dir.path()).status().message()), HasSubstr("is a folder"));
  std::ofstream(dir / "large.yaml") << std::string(kMaxJobFileBytes + 1, '#');
  EXPECT_THAT(std::string(LoadJobFile(dir / "large.yaml").status().message()),
              HasSubstr("at most 1048576 are allowed"));
}

TEST(JobFileTest, RefusesWhatIsNoYaml) {
  EXPECT_THAT(ErrorOf("name: [a\n"), HasSubstr("job.yaml:2:1: not YAML: "));
  EXPECT_THAT(ErrorOf("name: *nowhere\n"), HasSubstr("job.yaml:1:7: not YAML: "));
  EXPECT_EQ(ErrorOf("a: b\nname: \xFF\n"), "job.yaml:2:1: not UTF-8 text");
  EXPECT_EQ(ErrorOf("--- {}\n--- {}\n"), "job.yaml:1:1: must be one YAML document, not several");
}

TEST(JobFileTest, SaysWhichLineIsIndentedByATab) {
  EXPECT_THAT(ErrorOf("name: a\nhandler:\n\tcommand: [python3, h.py]\n"),
              AllOf(HasSubstr("not YAML: "), HasSubstr("; line 3 is indented by a tab")));
  EXPECT_THAT(ErrorOf("name: [a\nnote: x\ty\n"), Not(HasSubstr("tab")));
}

TEST(JobFileTest, SaysWhatMayHaveMadeAFileNoYaml) {
  const std::vector<std::pair<std::string, std::string>> files = {
      {"handler: word {command: [sh]}", "1:23: not YAML: illegal map value; a key has one value"},
      {"name: a\ninput:\n  format: lines\n - x: 3\n",
       "4:2: not YAML: end of map not found; the line"},
      {"name: [a\ninput: 3\n", "; a [ before it has no ]"},
      {"name: {a: b\ninput: 3\n", "; a { before it has no }"}};
  for (const auto& [text, said] : files) {
    EXPECT_THAT(ErrorOf(text), HasSubstr(said)) << text;
  }
}

TEST(JobFileTest, SurvivesDeepNesting) {
  EXPECT_THAT(ErrorOf(std::string(500'000, '[')), HasSubstr("not YAML"));
  EXPECT_FALSE(ErrorOf("input: &a {format: *a, columns: *a}\ngroups: &b [*b]\n").empty());
}

TEST(JobFileTest, ReportsABoundedNumberOfMistakes) {
  std::string text;
  for (int i = 0; i < 80; ++i) absl::StrAppend(&text, "wrong", i, ": 1\n");
  EXPECT_THAT(ErrorOf(text), HasSubstr("\nand 34 more"));
}

// The properties of `schema` and of the schemas that it refers to.
std::set<std::string> Properties(const nlohmann::json& root, const nlohmann::json& schema) {
  if (schema.contains("$ref")) {
    const std::string reference = schema["$ref"];
    return Properties(root, root.at(nlohmann::json::json_pointer(reference.substr(1))));
  }
  std::set<std::string> keys;
  for (const auto& property : schema.at("properties").items()) keys.insert(property.key());
  return keys;
}

TEST(JobFileTest, NamesTheMistakesOfATextThatCameFromNoFileByTheirPlace) {
  EXPECT_EQ(ParseJob("a: b\nname: \xFF\n", "").status().message(), "2:1: not UTF-8 text");
}

TEST(JobFileTest, ListsMistakesOneByOne) {
  JobDefinition job;
  const std::vector<yaml::Problem> problems = CheckJob("name: a\nnmae: b\n", &job);
  ASSERT_GT(problems.size(), 1u);
  EXPECT_EQ(problems.front().place.line, 1);
  EXPECT_EQ(problems.back().place.line, 2);
  EXPECT_THAT(problems.back().message, HasSubstr("nmae"));
  std::string many;
  for (int i = 0; i < 2 * yaml::kMaxProblems; ++i) many += absl::StrCat("k", i, ": 1\n");
  EXPECT_EQ(CheckJob(many, &job).size(), size_t{yaml::kMaxProblems});
}

TEST(JobFileTest, ListsNothingAndReadsTheJobWhenItIsSound) {
  const std::string text = ReadAll(Samples("valid").front());
  JobDefinition job;
  EXPECT_TRUE(CheckJob(text, &job).empty());
  EXPECT_EQ(job.revision, ParseJob(text, "job.yaml")->revision);
}

TEST(JobSchemaTest, KnowsTheSameKeysAsTheParser) {
  const auto schema = nlohmann::json::parse(ReadAll(kRoot / "schema/job.schema.json"));
  for (const auto& [place, keys] : JobFileKeys()) {
    SCOPED_TRACE(place);
    nlohmann::json at = schema;
    if (place == "groups[]") {
      at = schema["properties"]["groups"]["items"];
    } else if (!place.empty()) {
      at = schema["properties"][place];
    }
    EXPECT_EQ(Properties(schema, at), std::set<std::string>(keys.begin(), keys.end()));
  }
}

TEST(JobFileTest, ReadsTheColumnsOfOutputsInTheirOrderAndIntoTheRevision) {
  const std::string text = ReadAll(kRoot / "tests/job/valid/outputs.yaml");
  const auto job = ParseJob(text, "job.yaml");
  ASSERT_TRUE(job.ok()) << job.status();
  using Type = base::OutputColumn::Type;
  const std::vector<base::OutputColumn> columns = {
      {"invoice", Type::kText, 0}, {"lines", Type::kInt, 0}, {"total", Type::kDecimal, 2}};
  EXPECT_EQ(job->outputs, columns);
  EXPECT_EQ(job->schema().outputs, columns);
  std::string other = text;
  other.replace(other.find("decimal(2)"), 10, "decimal(3)");
  EXPECT_NE(ParseJob(other, "job.yaml")->revision, job->revision);
}

}  // namespace
}  // namespace muster::job
