// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/errors/error_code.h"

#include <set>
#include <string>

#include "gtest/gtest.h"

namespace muster::queue_gateway::errors {
namespace {

TEST(ErrorCodeTest, HasOneRowForEachCode) {
  std::set<std::string> names;
  for (int code = 0; code <= static_cast<int>(ErrorCode::kUnsupportedHttpVerb); ++code) {
    const ErrorInfo& info = InfoOf(static_cast<ErrorCode>(code));
    EXPECT_TRUE(names.emplace(info.name).second) << info.name;
    EXPECT_GE(info.http_status, 400);
    EXPECT_FALSE(info.message.empty());
  }
}

}  // namespace
}  // namespace muster::queue_gateway::errors
