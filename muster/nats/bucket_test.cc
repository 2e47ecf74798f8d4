#include "muster/nats/bucket.h"

#include <string>

#include "gtest/gtest.h"

namespace muster::nats {
namespace {

TEST(BucketTest, IsNamedByLettersDigitsAndDashes) {
  EXPECT_TRUE(ValidateBucket("muster").ok());
  EXPECT_TRUE(ValidateBucket("Team-1_eu").ok());
  for (const std::string& bucket :
       {std::string(), std::string("a.b"), std::string("a b"), std::string("*"),
        std::string("../a"), std::string("a\0b", 3), std::string(129, 'a')}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ValidateBucket(bucket))) << bucket;
  }
}

}  // namespace
}  // namespace muster::nats
