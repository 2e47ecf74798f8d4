// SPDX-License-Identifier: Apache-2.0
#include "muster/handler/command/try_start.h"

#include <filesystem>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/handler/command/command_fixture.h"

namespace muster::handler::command {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class TryStartTest : public CommandHandlerTest {
 protected:
  std::string Try(const std::string& script) {
    Program(script);
    return std::string(TryStart(options_).message());
  }
};

TEST_F(TryStartTest, FindsNothingWrongWithAProgramThatWaitsForItsItem) {
  EXPECT_EQ(Try("echo loading >&2; read -r line; " + std::string(kAnswer)), "");
}

TEST_F(TryStartTest, GivesAProgramTimeToEndByItself) {
  EXPECT_EQ(Try("read -r line; touch ended"), "");
  EXPECT_TRUE(std::filesystem::exists(folder_ / "ended"));
}

TEST_F(TryStartTest, SaysHowAProgramEndedBeforeItReadAnything) {
  EXPECT_THAT(Try("echo no module bill >&2; exit 2"),
              AllOf(HasSubstr("the handler's program exited with status 2"),
                    HasSubstr("before it was given an item; stderr: no module bill")));
  EXPECT_THAT(Try("exit 0"), HasSubstr("exited with status 0"));
  EXPECT_THAT(Try("kill -SEGV $$"), HasSubstr("was killed by signal 11"));
}

TEST_F(TryStartTest, RefusesAProgramThatGreets) {
  EXPECT_THAT(Try("echo hello; read -r line"), HasSubstr("wrote to stdout"));
}

TEST_F(TryStartTest, SaysThatThereIsNoSuchProgram) {
  options_.argv = {"./bill"};
  EXPECT_THAT(TryStart(options_).message(), HasSubstr("no program"));
}

}  // namespace
}  // namespace muster::handler::command
