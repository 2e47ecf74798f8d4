// SPDX-License-Identifier: Apache-2.0
#include "services/host/unknown_variables.h"

#include <cstdlib>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/base/log_capture.h"

namespace muster::host {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// "MUSTER_LEASES → MUSTER_LEASE" for each.
std::vector<std::string> Unknown(const std::vector<absl::string_view>& environment) {
  std::vector<std::string> texts;
  for (const UnknownVariable& unknown : UnknownVariables(environment)) {
    texts.push_back(unknown.name + " → " + unknown.meant);
  }
  return texts;
}

TEST(UnknownVariablesTest, NamesTheVariableThatWasMeant) {
  EXPECT_THAT(Unknown({"MUSTER_LEASES=3s", "MUSTER_TLS_CRET=", "MUSTER_SERVR=a:1"}),
              ElementsAre("MUSTER_LEASES → MUSTER_LEASE", "MUSTER_TLS_CRET → MUSTER_TLS_CERT",
                          "MUSTER_SERVR → MUSTER_SERVER"));
  EXPECT_THAT(Unknown({"MUSTER_WEATHER_STATION=1", "MUSTER_NATS_SERVER=nats://a:1"}),
              ElementsAre("MUSTER_WEATHER_STATION → ", "MUSTER_NATS_SERVER → "));
}

TEST(UnknownVariablesTest, KnowsTheVariablesOfAllPrograms) {
  EXPECT_THAT(Unknown({"MUSTER_LEASE=3s", "MUSTER_RULES=rules.yaml", "MUSTER_ACCOUNTS=a:b",
                       "MUSTER_SERVER=a:1", "MUSTER_HANDLER_PATIENCE=1m", "MUSTER_TEST_ANYTHING=1",
                       "MUSTERED=1", "PATH=/bin"}),
              IsEmpty());
}

TEST(UnknownVariablesTest, LeavesOutWhatKubernetesTellsOfServices) {
  EXPECT_THAT(
      Unknown({"MUSTER_INITIATOR_SERVICE_HOST=10.0.0.1", "MUSTER_INITIATOR_SERVICE_PORT=7700",
               "MUSTER_INITIATOR_SERVICE_PORT_GRPC=7700",
               "MUSTER_INITIATOR_PORT=tcp://10.0.0.1:7700",
               "MUSTER_INITIATOR_PORT_7700_TCP=tcp://10.0.0.1:7700",
               "MUSTER_INITIATOR_PORT_7700_TCP_ADDR=10.0.0.1", "MUSTER_SERVICE_HOST=10.0.0.2",
               "MUSTER_PORT=tcp://10.0.0.2:80"}),
      IsEmpty());
  EXPECT_THAT(Unknown({"MUSTER_INITIATOR_PORT=7700"}), ElementsAre(HasSubstr("INITIATOR_PORT")));
}

TEST(UnknownVariablesTest, WarnsOfThoseOfThisProcess) {
  setenv("MUSTER_LEASES", "3s", 1);
  setenv("MUSTER_WEATHER_STATION", "of another program", 1);
  base::LogCapture log(base::kWarning);
  WarnOfUnknownVariables();
  unsetenv("MUSTER_LEASES");
  unsetenv("MUSTER_WEATHER_STATION");
  EXPECT_THAT(log.lines(), Not(Contains(HasSubstr("MUSTER_WEATHER_STATION"))));
  EXPECT_THAT(log.lines(), Contains(AllOf(HasSubstr("an environment variable is ignored"),
                                          HasSubstr("variable=MUSTER_LEASES"),
                                          HasSubstr("meant=MUSTER_LEASE"))));
}

}  // namespace
}  // namespace muster::host
