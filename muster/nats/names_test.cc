// SPDX-License-Identifier: Apache-2.0
#include "muster/nats/names.h"

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

TEST(SubjectTest, MakesATokenOfAnyText) {
  EXPECT_EQ(SubjectToken("processor-host_1-4f"), "processor-host_1-4f");
  EXPECT_EQ(SubjectToken(""), "=");
  EXPECT_EQ(SubjectToken("a.b *>"), "a=2Eb=20=2A=3E");
  EXPECT_EQ(SubjectToken("\xc3\xa4="), "=C3=A4=3D");
}

TEST(SubjectTest, IsOneWordOfALine) {
  EXPECT_TRUE(ValidateSubject("$JS.ACK.a.b.1").ok());
  EXPECT_TRUE(ValidateSubject("grün.>").ok());
  for (const std::string& subject :
       {std::string(), std::string("a b"), std::string("a\r\nb"), std::string("a\tb"),
        std::string("a\0b", 3), std::string("a\x7f")}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ValidateSubject(subject))) << subject;
  }
}

}  // namespace

}  // namespace muster::nats
