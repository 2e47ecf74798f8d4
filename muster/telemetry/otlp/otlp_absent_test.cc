// SPDX-License-Identifier: Apache-2.0

// What a muster does that was built without the OpenTelemetry library: this program has
// otlp_absent.cc in the place of otlp.cc.
#include <cstdlib>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/base/clock.h"
#include "muster/telemetry/otlp/otlp.h"
#include "muster/telemetry/registry.h"

namespace muster::telemetry {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr char kEndpoint[] = "OTEL_EXPORTER_OTLP_ENDPOINT";

class OtlpAbsentTest : public testing::Test {
 protected:
  ~OtlpAbsentTest() override {
    for (const char* name : {kEndpoint, "OTEL_SDK_DISABLED"}) unsetenv(name);
  }

  absl::StatusOr<std::unique_ptr<OtlpExport>> Start() {
    return OtlpExport::StartIfWanted({"muster-processor", "p-1", "1"}, &registry_,
                                     base::RealClock());
  }

  Registry registry_;
};

TEST_F(OtlpAbsentTest, RefusesAnEndpointByTheNameOfItsVariableAndSaysWhatToDo) {
  EXPECT_FALSE(HasOtlp());
  setenv(kEndpoint, "http://collector:4317", 1);
  const absl::Status refused = Start().status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused));
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr(kEndpoint), HasSubstr("built without the OpenTelemetry library"),
                    HasSubstr("OTEL_SDK_DISABLED=true")));
}

TEST_F(OtlpAbsentTest, SendsNothingWhereNobodyAsks) {
  const auto without = Start();
  ASSERT_TRUE(without.ok()) << without.status();
  EXPECT_EQ(*without, nullptr);
  setenv(kEndpoint, "http://collector:4317", 1);
  setenv("OTEL_SDK_DISABLED", "true", 1);
  const auto disabled = Start();
  ASSERT_TRUE(disabled.ok()) << disabled.status();
  EXPECT_EQ(*disabled, nullptr);
}

}  // namespace
}  // namespace muster::telemetry
