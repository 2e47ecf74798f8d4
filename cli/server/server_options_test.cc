// SPDX-License-Identifier: Apache-2.0

// The choice of the server that a command talks to, and the message when the server does not
// answer.
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/cli/client_fixture.h"

namespace muster::cli {
namespace {

using ::testing::HasSubstr;
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

// It ended with 1, as if the server were at fault.
TEST_F(ServerOptionsTest, RefusesACertificateWithoutItsKeyAsWrongUsage) {
  for (const std::string command : {"queue", "batch"}) {
    const Done keyless = RunOnServer({command, "list", "--tls-cert", "client.pem"});
    EXPECT_EQ(keyless.code, kUsage);
    EXPECT_THAT(keyless.err,
                StartsWith("muster: " + command + " list: --tls-cert requires --tls-key\n"));
    EXPECT_EQ(RunOnServer({command, "list", "--tls-key", "client.key"}).code, kUsage);
  }
  EXPECT_EQ(RunOnServer({"worker", "list", "--tls-cert", "client.pem"}).code, kUsage);
  setenv("MUSTER_TLS_KEY", "client.key", 1);
  const Done variable = RunOnServer({"worker", "list"});
  unsetenv("MUSTER_TLS_KEY");
  EXPECT_EQ(variable.code, kUsage);
  EXPECT_THAT(variable.err,
              StartsWith("muster: worker list: MUSTER_TLS_KEY requires --tls-cert\n"));
}

// They looked at ./.muster, which may be there, and said nothing of the server.
TEST_F(ServerOptionsTest, RefusesTheVariableWhereACommandReadsFilesAndNoDirectoryIsNamed) {
  setenv("MUSTER_SERVER", server().c_str(), 1);
  for (const std::string command : {"check", "cost", "gc"}) {
    const Done refused = Run({command});
    EXPECT_EQ(refused.code, kUsage) << command;
    EXPECT_THAT(refused.err, StartsWith(absl::StrCat("muster: ", command, ": MUSTER_SERVER: ")));
    EXPECT_THAT(refused.err, HasSubstr("--data-dir DIR"));
    EXPECT_NE(Run({command, "--data-dir", data_dir()}).code, kUsage) << command;
    setenv("MUSTER_DATA_DIR", data_dir().c_str(), 1);
    EXPECT_NE(Run({command}).code, kUsage) << command;
    unsetenv("MUSTER_DATA_DIR");
  }
  unsetenv("MUSTER_SERVER");
}

}  // namespace
}  // namespace muster::cli
