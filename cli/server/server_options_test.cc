// SPDX-License-Identifier: Apache-2.0

// The choice of the server that a command talks to, and the message when the server does not
// answer.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/cli/client_fixture.h"

namespace muster::cli {
namespace {

using ::testing::StartsWith;

using ServerOptionsTest = ClientTest;

TEST_F(ServerOptionsTest, AnswersThatAServerIsNotReachable) {
  const std::string address = server();
  initiator_.reset();
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"queue", "list"}, {"report", "7"}}) {
    std::vector<std::string> arguments = command;
    arguments.insert(arguments.end(), {"--server", address});
    const Done done = Run(arguments);
    EXPECT_EQ(done.code, kUnreachable);
    EXPECT_THAT(done.err, StartsWith(absl::StrCat("muster: ", address, ": ")));
  }
}

TEST_F(ServerOptionsTest, AnswersThatAServerTookTooLong) {
  batches_.holds_answers = true;
  const Done done = RunOnServer({"batch", "get", "7", "--timeout", "50ms"});
  EXPECT_EQ(done.code, kUnreachable);
  EXPECT_THAT(done.err, StartsWith(absl::StrCat("muster: ", server(), ": ")));
}

TEST_F(ServerOptionsTest, RefusesTwoPlacesAtOnce) {
  EXPECT_EQ(RunOnServer({"queue", "list", "--data-dir", data_dir()}).code, kUsage);
}

TEST_F(ServerOptionsTest, RefusesAnAddressATimeAndFilesThatAreNone) {
  EXPECT_EQ(Run({"queue", "list", "--server", "nowhere"}).code, kError);
  EXPECT_EQ(RunOnServer({"queue", "list", "--timeout", "soon"}).code, kUsage);
  EXPECT_EQ(RunOnServer({"queue", "list", "--timeout", "0s"}).code, kUsage);
  EXPECT_EQ(RunOnServer({"queue", "list", "--tls-roots", "/nowhere/roots.pem"}).code, kError);
  EXPECT_EQ(RunOnServer({"queue", "list", "--timeout", "2m"}).code, kOk);
}

}  // namespace
}  // namespace muster::cli
