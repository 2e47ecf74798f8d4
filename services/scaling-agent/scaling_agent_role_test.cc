// SPDX-License-Identifier: Apache-2.0
#include "services/scaling-agent/scaling_agent_role.h"

#include <fstream>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/os/temp_dir.h"

namespace muster::scaling_agent {
namespace {

using ::testing::HasSubstr;

class AgentRoleOptionsTest : public ::testing::Test {
 protected:
  AgentRoleOptionsTest() {
    std::ofstream(dir_ / "rules.yaml")
        << "targets: {billing: {kind: process, name: p, queues: [in]}}\n";
  }
  // Returns the error in the options; empty if there is none.
  std::string Parse(const std::string& more) {
    CLI::App app;
    AddAgentOptions(&app, &options_);
    try {
      app.parse(absl::StrCat("--rules ", dir_ / "rules.yaml", " --actuator dry-run ", more));
    } catch (const CLI::ParseError& error) {
      return error.what();
    }
    return "";
  }

  const os::TempDir dir_;
  RoleOptions options_;
};

TEST_F(AgentRoleOptionsTest, RecordsNothingUnlessItIsTold) {
  EXPECT_EQ(Parse(""), "");
  EXPECT_EQ(options_.recording.path, "");
  EXPECT_EQ(options_.recording.most_bytes, scaling::recording::kDefaultRecordingBytes);
}

TEST_F(AgentRoleOptionsTest, BoundsARecordingByASizeThatHoldsTheRules) {
  EXPECT_EQ(Parse("--record run --record-size 1GiB"), "");
  EXPECT_EQ(options_.recording.path, "run");
  EXPECT_EQ(options_.recording.most_bytes, int64_t{1} << 30);
  EXPECT_THAT(Parse("--record-size 1MiB"), HasSubstr("1MiB is less than 8MiB"));
  EXPECT_THAT(Parse("--record-size much"), HasSubstr("--record-size"));
  EXPECT_THAT(Parse("--record-size 99999999999999999999"), HasSubstr("--record-size"));
}

TEST_F(AgentRoleOptionsTest, TakesAHostWithoutAPortForTheMetricsOfReplicas) {
  EXPECT_EQ(Parse("--replica-metrics 127.0.0.1"), "");
  EXPECT_EQ(options_.actuator.process.metrics_host, "127.0.0.1");
  EXPECT_THAT(Parse("--replica-metrics 127.0.0.1:7801"), HasSubstr("--replica-metrics"));
}

}  // namespace
}  // namespace muster::scaling_agent
