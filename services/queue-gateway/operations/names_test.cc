// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/operations/names.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::queue_gateway::operations {
namespace {

using protocol::ErrorCode;

std::string NameProblem(absl::string_view name) {
  const auto problem = CheckQueueName(name);
  return problem.has_value() ? std::string(errors::InfoOf(problem->code).name) : "";
}

TEST(NamesTest, AcceptsTheQueueNamesOfTheApi) {
  for (const std::string& name : {std::string("abc"), std::string("a-1-b"), std::string(63, 'x')}) {
    EXPECT_EQ(NameProblem(name), "") << name;
  }
  for (const std::string& name : {std::string("ab"), std::string(64, 'x')}) {
    EXPECT_EQ(NameProblem(name), "OutOfRangeInput") << name;
  }
  for (const char* name : {"Abc", "a--b", "-ab", "ab-", "a_b", "a/b", "a.b", "\xC3\xA9xx"}) {
    EXPECT_EQ(NameProblem(name), "InvalidResourceName") << name;
  }
}

TEST(NamesTest, ReadsMetadataFromHeadersAndKeepsTheirCase) {
  const auto metadata = MetadataOf({{"X-MS-Meta-CamelCase", "Value"},
                                    {"x-ms-meta-muster-poison", "p"},
                                    {"x-ms-meta-camelcase", "second"},
                                    {"x-ms-date", "no"}});
  ASSERT_TRUE(metadata.ok());
  EXPECT_THAT(*metadata, testing::ElementsAre(testing::Pair("CamelCase", "Value,second"),
                                              testing::Pair("muster-poison", "p")));
  EXPECT_THAT(MetadataHeaders(*metadata),
              testing::ElementsAre(testing::Pair("x-ms-meta-CamelCase", "Value,second"),
                                   testing::Pair("x-ms-meta-muster-poison", "p")));
}

TEST(NamesTest, RefusesMetadataThatAreNone) {
  EXPECT_EQ(MetadataOf({{"x-ms-meta-", "v"}}).error().code, ErrorCode::kEmptyMetadataKey);
  EXPECT_EQ(MetadataOf({{"x-ms-meta-1a", "v"}}).error().code, ErrorCode::kInvalidMetadata);
  EXPECT_EQ(MetadataOf({{"x-ms-meta-a.b", "v"}}).error().code, ErrorCode::kInvalidMetadata);
  EXPECT_EQ(MetadataOf({{"x-ms-meta-a", std::string(8192, 'v')}}).error().code,
            ErrorCode::kMetadataTooLarge);
  EXPECT_TRUE(MetadataOf({{"x-ms-meta-a", std::string(8191, 'v')}}).ok());
}

}  // namespace
}  // namespace muster::queue_gateway::operations
