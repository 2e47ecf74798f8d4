// SPDX-License-Identifier: Apache-2.0
#include "cli/completion.h"

#include <sstream>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "cli/app.h"
#include "cli/output/environment.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// `shop [--loud] sell [-c {red,blue}] THING`, and a hidden command.
class CompletionTest : public ::testing::Test {
 protected:
  CompletionTest() {
    app_.add_flag("--loud", loud_, "Shout");
    CLI::App* const sell = app_.add_subcommand("sell", "Don't keep");
    sell->add_option("-c,--colour", colour_, "Of it")->check(CLI::IsMember({"red", "blue"}));
    sell->add_option("--to", buyer_, "Whom");
    sell->add_option("THING", thing_, "What");
    app_.add_subcommand("inner", "For itself")->group("");
  }

  CLI::App app_{"A shop", "shop"};
  bool loud_ = false;
  std::string colour_, buyer_, thing_;
};

TEST_F(CompletionTest, KnowsTheCommandsAndOptionsThatAreForPeople) {
  const CompletionCommand words = WordsOf(app_);
  ASSERT_EQ(words.commands.size(), 1u);
  const CompletionCommand& sell = words.commands[0];
  EXPECT_EQ(sell.path, "sell");
  EXPECT_TRUE(sell.takes_arguments);
  EXPECT_FALSE(words.takes_arguments);
  ASSERT_EQ(sell.options.size(), 3u);
  EXPECT_THAT(sell.options[0].names, ElementsAre("-h", "--help"));
  EXPECT_FALSE(sell.options[0].takes_value);
  EXPECT_THAT(sell.options[1].names, ElementsAre("-c", "--colour"));
  EXPECT_TRUE(sell.options[1].takes_value);
  EXPECT_THAT(sell.options[1].choices, ElementsAre("red", "blue"));
  EXPECT_TRUE(sell.options[2].takes_value);
  EXPECT_THAT(sell.options[2].choices, IsEmpty());
}

TEST_F(CompletionTest, QuotesWhatIsSaidOfACommand) {
  const CompletionCommand words = WordsOf(app_);
  EXPECT_THAT(ZshCompletion(words), HasSubstr("'sell:Don'\\''t keep'"));
  EXPECT_THAT(FishCompletion(words), HasSubstr("-a sell -d 'Don\\'t keep'"));
}

TEST_F(CompletionTest, OffersTheChoicesOfAnOption) {
  const CompletionCommand words = WordsOf(app_);
  EXPECT_THAT(BashCompletion(words),
              HasSubstr("'sell -c' | 'sell --colour') __muster_offer red blue; return ;;\n"
                        "    'sell --to') :; return ;;\n"));
  EXPECT_THAT(ZshCompletion(words), HasSubstr("compadd -- red blue"));
  EXPECT_THAT(FishCompletion(words), HasSubstr(" -s c -l colour -x -a 'red blue' -d 'Of it'"));
}

TEST(CompletionCommandTest, PrintsAScriptWithEveryCommand) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    std::ostringstream out, err;
    Environment environment;
    environment.out = &out;
    environment.err = &err;
    const char* const argv[] = {"muster", "completion", shell};
    EXPECT_EQ(RunCommandLine(3, argv, environment), kOk) << err.str();
    EXPECT_THAT(out.str(), AllOf(HasSubstr("'batch receipt'"), HasSubstr("'completion bash'"),
                                 HasSubstr("yaml"), Not(HasSubstr("serve-handler"))));
  }
}

}  // namespace
}  // namespace muster::cli
