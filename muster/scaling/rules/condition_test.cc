// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/rules/condition.h"

#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/scaling/rules/limits.h"
#include "tests/fakes/base/test_seed.h"

namespace muster::scaling::rules {
namespace {

using ::testing::HasSubstr;

// depth and grow are counts, age and sla times, cpu a share.
std::optional<Kind> KnownKind(absl::string_view name) {
  static const auto* const kinds = new std::map<std::string, Kind>{{"depth", Kind::kPlain},
                                                                   {"grow", Kind::kPlain},
                                                                   {"age", Kind::kTime},
                                                                   {"sla", Kind::kTime},
                                                                   {"cpu", Kind::kShare}};
  const auto found = kinds->find(std::string(name));
  return found == kinds->end() ? std::nullopt : std::optional(found->second);
}

using Values = std::map<std::string, double>;

// Returns "true", "false", "unknown", or the parser's error.
std::string Answer(absl::string_view text, const Values& values = {}) {
  const absl::StatusOr<Condition> condition = Condition::Parse(text, KnownKind);
  if (!condition.ok()) return std::string(condition.status().message());
  const std::optional<bool> truth =
      condition->Evaluate([&](absl::string_view name) -> std::optional<double> {
        const auto found = values.find(std::string(name));
        return found == values.end() ? std::nullopt : std::optional(found->second);
      });
  return !truth ? "unknown" : *truth ? "true" : "false";
}

std::string Printed(absl::string_view text) {
  const absl::StatusOr<Condition> condition = Condition::Parse(text, KnownKind);
  return condition.ok() ? condition->ToString() : std::string(condition.status().message());
}

TEST(ConditionTest, ComparesWhatWasMeasured) {
  const Values values = {{"age", 200}, {"sla", 300}, {"grow", 3}, {"cpu", 91}, {"depth", 10'000}};
  EXPECT_EQ(Answer("age > 0.5*sla and grow > 0", values), "true");
  EXPECT_EQ(Answer("age > sla or grow < 0", values), "false");
  EXPECT_EQ(Answer("cpu > 90", values), "true");
  EXPECT_EQ(Answer("cpu > 92%", values), "false");
  EXPECT_EQ(Answer("depth == 10k", values), "true");
  EXPECT_EQ(Answer("depth != 10k", values), "false");
  EXPECT_EQ(Answer("age >= 3m20s and age <= 200s", values), "true");
  EXPECT_EQ(Answer("age < 200.5s", values), "true");
}

TEST(ConditionTest, TakesAShareOfATime) {
  EXPECT_EQ(Answer("age > 50% * sla", {{"age", 151}, {"sla", 300}}), "true");
  EXPECT_EQ(Answer("age > sla * 50%", {{"age", 149}, {"sla", 300}}), "false");
}

TEST(ConditionTest, BindsAsOneExpects) {
  EXPECT_EQ(Answer("1 + 2 * 3 == 7"), "true");
  EXPECT_EQ(Answer("10 - 3 - 2 == 5"), "true");
  EXPECT_EQ(Answer("12 / 3 / 2 == 2"), "true");
  EXPECT_EQ(Answer("(1 + 2) * 3 == 9"), "true");
  EXPECT_EQ(Answer("-2 * -3 == 6"), "true");
  EXPECT_EQ(Answer("1 < 2 or 1 < 2 and 2 < 1"), "true");
  EXPECT_EQ(Answer("(1 < 2 or 1 < 2) and 2 < 1"), "false");
  EXPECT_EQ(Answer("not 2 < 1 and 1 < 2"), "true");
  EXPECT_EQ(Answer("not not 1 < 2"), "true");
  EXPECT_EQ(Answer("1<2"), "true");
}

TEST(ConditionTest, IsUnknownWhenDataThatWouldDecideItLack) {
  EXPECT_EQ(Answer("age > 5s"), "unknown");
  EXPECT_EQ(Answer("not age > 5s"), "unknown");
  EXPECT_EQ(Answer("age > 5s and 1 < 2"), "unknown");
  EXPECT_EQ(Answer("age > 5s or 2 < 1"), "unknown");
  EXPECT_EQ(Answer("age == age"), "unknown");
}

TEST(ConditionTest, IsKnownWhenTheRestDecides) {
  EXPECT_EQ(Answer("age > 5s and 2 < 1"), "false");
  EXPECT_EQ(Answer("2 < 1 and age > 5s"), "false");
  EXPECT_EQ(Answer("age > 5s or 1 < 2"), "true");
  EXPECT_EQ(Answer("1 < 2 or age > 5s"), "true");
}

TEST(ConditionTest, KnowsNothingOfWhatIsNoNumber) {
  EXPECT_EQ(Answer("depth / grow > 0", {{"depth", 1}, {"grow", 0}}), "unknown");
  EXPECT_EQ(Answer("depth > 0", {{"depth", std::nan("")}}), "unknown");
  EXPECT_EQ(Answer("depth > 0", {{"depth", std::numeric_limits<double>::infinity()}}), "unknown");
  EXPECT_EQ(Answer("depth * depth > 0", {{"depth", 1e300}}), "unknown");
}

TEST(ConditionTest, NamesTheColumnOfAMistake) {
  EXPECT_EQ(Answer("age > 5s and dept > 1"), "column 14: there is no operand 'dept'");
  EXPECT_EQ(Answer("cpu > 90 &&"), "column 10: a condition has no '&'; did you mean 'and'?");
  EXPECT_EQ(Answer("cpu = 90"), "column 5: a condition has no '='; did you mean '=='?");
  EXPECT_EQ(Answer("age >"), "column 6: expected a number, an operand or '(', found the end");
  EXPECT_EQ(Answer("(cpu > 9"), "column 9: expected ')', found the end");
  EXPECT_EQ(Answer("cpu > 9)"), "column 8: expected the end, 'and' or 'or', found ')'");
  EXPECT_EQ(Answer("cpu > and"), "column 7: expected a number, an operand or '(', found 'and'");
  EXPECT_EQ(Answer(""), "column 1: expected a number, an operand or '(', found the end");
  EXPECT_EQ(Answer("1 < 2 < 3"), "column 7: compare two at a time, and join with 'and'");
  EXPECT_EQ(Answer("age > 5q"),
            "column 7: '5q' is not a number, nor one with a unit (5m, 90%, 10k)");
  EXPECT_THAT(Answer("depth > 1.2.3"), HasSubstr("column 9: '1.2.3' is not a number"));
  EXPECT_THAT(Answer("depth > 1."), HasSubstr("column 9: '1.' is not a number"));
  EXPECT_THAT(Answer("depth > 10k%"), HasSubstr("column 9"));
  EXPECT_THAT(Answer("depth > \xFF"), HasSubstr("column 9: a condition has no '\\xff'"));
}

TEST(ConditionTest, RefusesKindsThatDoNotFit) {
  EXPECT_EQ(Answer("age > 5"), "column 5: '>' does not fit a time and a plain number");
  EXPECT_EQ(Answer("age + depth > 5s"), "column 5: '+' does not fit a time and a plain number");
  EXPECT_EQ(Answer("age * sla > 5s"), "column 5: '*' does not fit a time and a time");
  EXPECT_EQ(Answer("depth / age > 1"), "column 7: '/' does not fit a plain number and a time");
  EXPECT_EQ(Answer("age / sla > 0.5", {{"age", 2}, {"sla", 3}}), "true");
  EXPECT_EQ(Answer("cpu * cpu > 1"),
            "column 5: '*' does not fit a share (percent) and a share (percent)");
  EXPECT_EQ(Answer("depth"), "column 1: a condition is true or false; this is a plain number");
  EXPECT_EQ(Answer("depth and cpu > 1"),
            "column 7: 'and' does not fit a plain number and true or false");
  EXPECT_EQ(Answer("not depth"), "column 1: 'not' does not fit a plain number");
  EXPECT_EQ(Answer("-(1 < 2)"), "column 1: '-' does not fit true or false");
  EXPECT_EQ(Answer("(1 < 2) == (1 < 2)"),
            "column 9: '==' does not fit true or false and true or false");
}

TEST(ConditionTest, IsBoundedInLengthAndDepth) {
  const auto nested = [](int depth) {
    return absl::StrCat(std::string(depth, '('), "1 < 2", std::string(depth, ')'));
  };
  EXPECT_EQ(Answer(nested(kMaxConditionDepth)), "true");
  EXPECT_EQ(Answer(nested(kMaxConditionDepth + 1)), "column 33: nested more than 32 deep");
  EXPECT_THAT(Answer(absl::StrCat("1 < ", std::string(500, '-'), "2")), HasSubstr("32 deep"));
  std::string nots;
  for (int i = 0; i < 100; ++i) nots += "not ";
  EXPECT_THAT(Answer(nots + "1 < 2"), HasSubstr("32 deep"));
  EXPECT_EQ(Answer(std::string(kMaxConditionBytes + 1, ' ')),
            "column 1001: longer than 1000 bytes");
  std::string chain = "1";
  while (chain.size() + 6 <= kMaxConditionBytes) chain += "+1";
  EXPECT_EQ(Answer(chain + " > 9"), "true");
}

TEST(ConditionTest, PrintsOnlyTheParenthesesThatItNeeds) {
  EXPECT_EQ(Printed("((age)>(0.5*sla)) and (grow>0)"), "age > 0.5 * sla and grow > 0");
  EXPECT_EQ(Printed("(1+2)*3 > 4"), "(1 + 2) * 3 > 4");
  EXPECT_EQ(Printed("1-(2-3) > 4"), "1 - (2 - 3) > 4");
  EXPECT_EQ(Printed("not (1 < 2 and 1 < 2)"), "not (1 < 2 and 1 < 2)");
  EXPECT_EQ(Printed("not (1 < 2) and 1 < 2"), "not 1 < 2 and 1 < 2");
  EXPECT_EQ(Printed("-(-1) < 2"), "--1 < 2");
}

// Random trees, of which each is a condition that the grammar allows.
class RandomTree {
 public:
  explicit RandomTree(uint64_t seed) : random_(seed) {}

  std::string Truth(int depth) {
    switch (depth == 0 ? 3 : Below(4)) {
      case 0:
        return absl::StrCat("(", Truth(depth - 1), ") or (", Truth(depth - 1), ")");
      case 1:
        return absl::StrCat("(", Truth(depth - 1), ") and (", Truth(depth - 1), ")");
      case 2:
        return absl::StrCat("not (", Truth(depth - 1), ")");
      default: {
        const char* const signs[] = {"<", "<=", ">", ">=", "==", "!="};
        return absl::StrCat(Number(depth), signs[Below(6)], Number(depth));
      }
    }
  }

  uint64_t Below(uint64_t bound) { return random_() % bound; }

 private:
  std::string Number(int depth) {
    const char* const leaves[] = {"depth", "grow", "1", "0.5", "10k", "3", "0"};
    if (depth == 0) return leaves[Below(7)];
    if (Below(5) == 0) return absl::StrCat("-(", Number(depth - 1), ")");
    const char* const signs[] = {"+", "-", "*", "/"};
    return absl::StrCat("(", Number(depth - 1), ")", signs[Below(4)], "(", Number(depth - 1), ")");
  }

  std::mt19937_64 random_;
};

TEST(ConditionPropertyTest, ReadsBackWhatItPrintsAsTheSameTree) {
  const uint64_t seed = base::testing::TestSeed();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  RandomTree trees(seed);
  int read = 0;
  for (int i = 0; i < 2000; ++i) {
    const auto condition =
        Condition::Parse(trees.Truth(static_cast<int>(trees.Below(4))), KnownKind);
    if (!condition.ok()) {
      ASSERT_THAT(std::string(condition.status().message()), HasSubstr("longer than"));
      continue;
    }
    ++read;
    const auto again = Condition::Parse(condition->ToString(), KnownKind);
    ASSERT_TRUE(again.ok()) << condition->text() << ": " << again.status();
    ASSERT_TRUE(SameTree(condition->root(), again->root()))
        << condition->text() << " became " << condition->ToString();
    ASSERT_EQ(again->ToString(), condition->ToString());
  }
  EXPECT_GT(read, 1000);
}

// More data may change an answer only from `unknown` to a known value.
TEST(ConditionPropertyTest, LearningMoreChangesNoAnswerThatWasKnown) {
  const uint64_t seed = base::testing::TestSeed();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  RandomTree trees(seed);
  for (int i = 0; i < 2000; ++i) {
    const std::string text = trees.Truth(static_cast<int>(trees.Below(3)));
    const Values all = {{"depth", static_cast<double>(trees.Below(4))},
                        {"grow", static_cast<double>(trees.Below(4))}};
    const std::string less = Answer(text, {*all.begin()});
    if (less == "unknown") continue;
    ASSERT_EQ(Answer(text, all), less) << text;
  }
}

TEST(ConditionPropertyTest, AnswersAnyBytesWithATreeOrAMistakeInThem) {
  const uint64_t seed = base::testing::TestSeed();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  RandomTree trees(seed);
  const std::vector<std::string> pieces = {"age", "sla", "cpu", "5m",   "90%", "10k", "(", ")",
                                           "and", "or",  "not", "<",    ">=",  "==",  "+", "-",
                                           "*",   "/",   " ",   "\xC3", "0",   ".",   "="};
  for (int i = 0; i < 5000; ++i) {
    std::string text;
    for (uint64_t left = trees.Below(12); left > 0; --left) {
      text += pieces[trees.Below(pieces.size())];
    }
    const std::string answer = Answer(text);
    ASSERT_TRUE(answer == "true" || answer == "false" || answer == "unknown" ||
                absl::StartsWith(answer, "column "))
        << text << ": " << answer;
  }
}

}  // namespace
}  // namespace muster::scaling::rules
