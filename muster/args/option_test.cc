// SPDX-License-Identifier: Apache-2.0
#include "muster/args/option.h"

#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/args/command.h"

namespace muster::args {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

enum class Colour { kRed, kBlue };

class OptionTest : public testing::Test {
 protected:
  void Read(const std::string& line) { app_.parse(line); }
  // What is said of a line that is refused; "" if it is not.
  std::string Complaint(const std::string& line) {
    try {
      app_.parse(line);
    } catch (const CLI::ParseError& error) {
      return error.what();
    }
    return "";
  }

  CLI::App app_;
};

TEST_F(OptionTest, GivesEachValueToItsPlace) {
  std::string file;
  int number = 3;
  double share = 0;
  std::optional<int64_t> most;
  std::vector<std::string> words;
  bool loud = false;
  Add(&app_, "FILE", &file, "A file").Required();
  Add(&app_, "-n,--number", &number, "A number").CaptureDefaultStr();
  Add(&app_, "--share", &share, "A share");
  Add(&app_, "--most", &most, "A bound");
  Add(&app_, "--word", &words, "A word").Repeatable();
  AddFlag(&app_, "--loud", &loud, "Loud");
  EXPECT_THAT(app_.help(), HasSubstr("INT=3"));
  Read("--share 0.5 --word a --word b --loud --most 7 here");
  EXPECT_EQ(file, "here");
  EXPECT_EQ(number, 3);
  EXPECT_EQ(share, 0.5);
  EXPECT_EQ(most, 7);
  EXPECT_THAT(words, ElementsAre("a", "b"));
  EXPECT_TRUE(loud);
}

TEST_F(OptionTest, RefusesWhatItsChecksRefuse) {
  int number = 0;
  std::string word;
  Add(&app_, "--number", &number, "1 to 3").Check(Range(1, 3));
  Add(&app_, "--word", &word, "One of two").Check(IsMember({"yes", "no"}));
  EXPECT_THAT(Complaint("--number 4"), HasSubstr("not in range 1 to 3"));
  EXPECT_THAT(Complaint("--word perhaps"), HasSubstr("perhaps not in {yes,no}"));
  EXPECT_EQ(Complaint("--number 3 --word no"), "");
}

TEST_F(OptionTest, SaysInFewWordsThatANumberIsTooSmall) {
  double price = 1;
  int items = 1;
  Add(&app_, "--price", &price, "Dollars").Check(NonNegativeNumber());
  Add(&app_, "--items", &items, "So many").Check(PositiveNumber());
  EXPECT_EQ(Complaint("--price=-5"), "--price: -5 is too small");
  EXPECT_EQ(Complaint("--price=much"), "--price: 'much' is not a number");
  EXPECT_EQ(Complaint("--items 0"), "--items: 0 is too small");
  EXPECT_EQ(Complaint("--price 0 --items 1"), "");
}

// -1 was 18446744073709551615.
TEST_F(OptionTest, ANumberWithoutASignIsNotNegative) {
  uint64_t batch = 0;
  std::optional<uint64_t> revision;
  std::vector<uint64_t> batches;
  Add(&app_, "--batch", &batch, "One");
  Add(&app_, "--revision", &revision, "Perhaps");
  Add(&app_, "--batches", &batches, "Some").Repeatable();
  for (const char* option : {"--batch", "--revision", "--batches"}) {
    EXPECT_THAT(Complaint(std::string(option) + " -1"), HasSubstr(": -1 is too small"));
    EXPECT_EQ(Complaint(std::string(option) + " 1"), "");
  }
}

TEST_F(OptionTest, TakesTheNumbersOfAnEnumerationThatAValidatorWrites) {
  Colour colour = Colour::kRed;
  std::vector<Colour> colours;
  const Validator names{[](std::string& text) {
                          text = text == "blue" ? "1" : "0";
                          return std::string();
                        },
                        "{red,blue}"};
  Add(&app_, "--colour", &colour, "Of it").Transform(names);
  Add(&app_, "--colours", &colours, "Of all").Repeatable().Transform(names);
  Read("--colour blue --colours red --colours blue");
  EXPECT_EQ(colour, Colour::kBlue);
  EXPECT_THAT(colours, ElementsAre(Colour::kRed, Colour::kBlue));
}

TEST_F(OptionTest, KnowsWhatWasGivenTogether) {
  std::string file;
  bool here = false;
  bool there = false;
  bool nowhere = false;
  const Option first = AddFlag(&app_, "--here", &here, "Here");
  AddFlag(&app_, "--there", &there, "There").Excludes(first);
  const Option third = AddFlag(&app_, "--nowhere", &nowhere, "Neither");
  Add(&app_, "--file", &file, "A file").Needs(first);
  EXPECT_THAT(Complaint("--here --there"), HasSubstr("--here excludes --there"));
  EXPECT_THAT(Complaint("--file a"), HasSubstr("--file requires --here"));
  Read("--here --file a");
  EXPECT_EQ(Find(&app_, "--here").count(), 1);
  EXPECT_TRUE(IsOnCommandLine(app_, first));
  EXPECT_FALSE(IsOnCommandLine(app_, third));
  EXPECT_FALSE(Has(app_, "--elsewhere"));
}

TEST_F(OptionTest, CallsTheCommandThatIsNamed) {
  std::string called;
  CLI::App* const buy = AddSubcommand(&app_, "buy", "Buy it");
  OnParsed(buy, [&called] { called += "read "; });
  OnRun(buy, [&called] { called += "run"; });
  OnRun(AddSubcommand(&app_, "sell", "Sell it"), [] { Refuse("--price", "is too low"); });
  RequireSubcommand(&app_);
  EXPECT_THAT(Complaint(""), HasSubstr("subcommand is required"));
  EXPECT_EQ(Complaint("sell"), "--price: is too low");
  EXPECT_EQ(called, "");
  Read("buy");
  EXPECT_EQ(called, "read run");
}

}  // namespace
}  // namespace muster::args
