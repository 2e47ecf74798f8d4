// SPDX-License-Identifier: Apache-2.0
#include <fstream>
#include <initializer_list>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/app.h"
#include "cli/output/environment.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/os/temp_dir.h"
#include "nlohmann/json.hpp"
#include "tests/fakes/base/fake_clock.h"

namespace muster::cli {
namespace {

using ::testing::HasSubstr;

const std::string kExamples = std::string(MUSTER_SOURCE_DIR) + "/examples/rules/";

class ScaleRulesTest : public ::testing::Test {
 protected:
  int Run(std::initializer_list<std::string> arguments) {
    const std::vector<std::string> given = arguments;
    std::vector<const char*> argv = {"muster", "scale", "rules"};
    for (const std::string& argument : given) argv.push_back(argument.c_str());
    handler::HandlerRegistry handlers;
    out_.str("");
    err_.str("");
    Environment environment;
    environment.handlers = &handlers;
    environment.clock = &clock_;
    environment.out = &out_;
    environment.err = &err_;
    return RunCommandLine(static_cast<int>(argv.size()), argv.data(), environment);
  }

  const os::TempDir dir_;
  base::FakeClock clock_;
  std::ostringstream out_;
  std::ostringstream err_;
};

TEST_F(ScaleRulesTest, FindsTheExamplesFine) {
  for (const char* name : {"billing", "month-end", "release-mornings"}) {
    EXPECT_EQ(Run({"check", absl::StrCat(kExamples, name, ".yaml")}), kOk) << err_.str();
    EXPECT_THAT(out_.str(), HasSubstr(".yaml: the rules are fine (targets: 1"));
  }
}

TEST_F(ScaleRulesTest, PrintsEachMistakeWithItsPlaceAndEndsWithOne) {
  const std::string file = dir_ / "rules.yaml";
  std::ofstream(file) << "mode: on\ntargets: {t: {kind: pod, name: p, queues: [q]}}\n";
  EXPECT_EQ(Run({"check", file}), kError);
  EXPECT_EQ(err_.str(),
            absl::StrCat("muster: ", file, ":1:7: mode: must be one of observe, notify, act, not ",
                         "'on'\n", file, ":2:21: targets.t.kind: must be one of deployment, ",
                         "statefulset, process, threads, dry-run, not 'pod'\n"));
  EXPECT_EQ(Run({"check", dir_ / "none.yaml"}), kError);
  EXPECT_THAT(err_.str(), HasSubstr("does not exist"));
  EXPECT_EQ(Run({"check"}), kUsage);
  EXPECT_EQ(Run({}), kUsage);
}

TEST_F(ScaleRulesTest, WarnsOfAnOldFormAndTakesIt) {
  const std::string file = dir_ / "rules.yaml";
  std::ofstream(file) << "targets: {t: {kind: process, name: p, queues: [q]}}\n"
                         "on_metric_loss: {keep: max(current, floor)}\n";
  EXPECT_EQ(Run({"check", file}), kOk);
  EXPECT_EQ(err_.str(), absl::StrCat("muster: warning: ", file, ":2:24: on_metric_loss.keep: ",
                                     "max(current, floor) is now written max\n"));
  EXPECT_THAT(out_.str(), HasSubstr("the rules are fine"));
}

TEST_F(ScaleRulesTest, ShowsWhatRulesAndWhenThatChanges) {
  const std::string file = absl::StrCat(kExamples, "month-end.yaml");
  EXPECT_EQ(Run({"show", file, "--at", "2026-11-30T10:00:00+01:00"}), kOk) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("closing  [5, 100] (month-end)"));
  EXPECT_THAT(out_.str(), HasSubstr("900 (month-end)"));
  EXPECT_THAT(out_.str(), HasSubstr("2026-11-30T15:00:00.000Z"));
  EXPECT_EQ(Run({"show", file, "--at", "2026-11-15T00:00:00Z"}), kOk);
  EXPECT_THAT(out_.str(), HasSubstr("closing  [0, 10] (default)"));
  EXPECT_THAT(out_.str(), HasSubstr("2026-11-29T07:00:00.000Z"));
}

TEST_F(ScaleRulesTest, ShowsNowAsJson) {
  const std::string file = absl::StrCat(kExamples, "billing.yaml");
  // 01:00 in Paris on a Friday.
  EXPECT_EQ(Run({"show", file, "-o", "json", "--cold-start", "90s"}), kOk) << err_.str();
  const auto json = nlohmann::json::parse(out_.str());
  ASSERT_EQ(json.size(), 1u);
  EXPECT_EQ(json[0]["target"], "billing");
  EXPECT_EQ(json[0]["min"], 0);
  EXPECT_EQ(json[0]["max"], 40);
  EXPECT_EQ(json[0]["range_by"], "default");
  EXPECT_TRUE(json[0]["budget_by"].is_null());
  EXPECT_EQ(json[0]["changes"], "2011-11-11T06:58:30.000Z");
}

TEST_F(ScaleRulesTest, RefusesATimeThatIsNone) {
  const std::string file = absl::StrCat(kExamples, "billing.yaml");
  EXPECT_EQ(Run({"show", file, "--at", "tomorrow"}), kError);
  EXPECT_THAT(err_.str(), HasSubstr("'tomorrow' is no time such as"));
}

}  // namespace
}  // namespace muster::cli
