// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/protocol/parameters.h"

#include "gtest/gtest.h"

namespace muster::queue_gateway::protocol {
namespace {

ErrorCode CodeOf(const Parameters& parameters) {
  EXPECT_TRUE(parameters.error().has_value());
  return parameters.error().has_value() ? parameters.error()->code : ErrorCode::kInternalError;
}

TEST(ParametersTest, ReadsIntegersWithinTheirBounds) {
  const Target target = *ParseTarget("/a/q?n=32&m=-1");
  Parameters parameters(target);
  EXPECT_EQ(parameters.Integer("n", 1, 32), 32);
  EXPECT_EQ(parameters.Integer("N", 1, 32), 32);
  EXPECT_EQ(parameters.RequiredInteger("m", -1, 0), -1);
  EXPECT_EQ(parameters.Integer("absent", 1, 32), std::nullopt);
  EXPECT_FALSE(parameters.error().has_value());
}

TEST(ParametersTest, KeepsTheFirstError) {
  const Target target = *ParseTarget("/a/q?n=33&m=x&o=99999999999999999999&p=");
  Parameters range(target);
  range.Integer("n", 1, 32);
  range.Integer("m", 1, 32);
  EXPECT_EQ(CodeOf(range), ErrorCode::kOutOfRangeQueryParameterValue);
  Parameters text(target);
  text.Integer("m", 1, 32);
  EXPECT_EQ(CodeOf(text), ErrorCode::kInvalidQueryParameterValue);
  Parameters large(target);
  large.Integer("o", 1, 32);
  EXPECT_EQ(CodeOf(large), ErrorCode::kOutOfRangeQueryParameterValue);
  Parameters missing(target);
  missing.Required("p");
  EXPECT_EQ(CodeOf(missing), ErrorCode::kMissingRequiredQueryParameter);
}

TEST(ParametersTest, TakesDigitsForANumberAndNothingElse) {
  for (const char* text :
       {"+5", "%2B5", "%205", "5%20", "5%00", "0x5", "1.5", "1e1", "-", "", "--5", "%D9%A5"}) {
    const Target target = *ParseTarget(std::string("/a/q?n=") + text);
    Parameters parameters(target);
    parameters.Integer("n", -9, 9);
    EXPECT_EQ(CodeOf(parameters), ErrorCode::kInvalidQueryParameterValue) << text;
  }
  for (const char* text : {"-99999999999999999999", "99999999999999999999", "10", "-10"}) {
    const Target target = *ParseTarget(std::string("/a/q?n=") + text);
    Parameters parameters(target);
    parameters.Integer("n", -9, 9);
    EXPECT_EQ(CodeOf(parameters), ErrorCode::kOutOfRangeQueryParameterValue) << text;
  }
  const Target target = *ParseTarget("/a/q?n=007");
  EXPECT_EQ(Parameters(target).Integer("n", -9, 9), 7);
}

}  // namespace
}  // namespace muster::queue_gateway::protocol
