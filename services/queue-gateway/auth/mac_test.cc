// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/auth/mac.h"

#include <gtest/gtest.h>

#include "absl/strings/escaping.h"

namespace muster::queue_gateway::auth {
namespace {

// RFC 4231, test case 2.
TEST(MacTest, SignsAsTheStandardSays) {
  EXPECT_EQ(absl::BytesToHexString(HmacSha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST(MacTest, ComparesAllBytes) {
  EXPECT_TRUE(EqualInConstantTime("abcd", "abcd"));
  EXPECT_TRUE(EqualInConstantTime("", ""));
  EXPECT_FALSE(EqualInConstantTime("abcd", "abce"));
  EXPECT_FALSE(EqualInConstantTime("abcd", "bbcd"));
  EXPECT_FALSE(EqualInConstantTime("abcd", "abc"));
}

TEST(MacTest, TakesBase64InItsOneFormOnly) {
  EXPECT_EQ(DecodeBase64("+/8="), "\xfb\xff");
  EXPECT_EQ(DecodeBase64(""), "");
  for (const char* const other :
       {"+/8", "+/8==", "-_8=", "+/9=", " +/8=", "+/8=\n", "+/ 8=", "+/8.", "+/8=x", "="}) {
    EXPECT_EQ(DecodeBase64(other), std::nullopt) << other;
  }
}

TEST(MacTest, TakesBase64UrlWithoutPaddingOnly) {
  EXPECT_EQ(DecodeBase64Url("-_8"), "\xfb\xff");
  for (const char* const other : {"-_8=", "+/8", "-_9", "-_8 ", "-"}) {
    EXPECT_EQ(DecodeBase64Url(other), std::nullopt) << other;
  }
}

}  // namespace
}  // namespace muster::queue_gateway::auth
