// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/auth/bearer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/err.h>

#include <fstream>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "muster/os/temp_dir.h"
#include "services/queue-gateway/auth/jwks.h"
#include "services/queue-gateway/auth/limits.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/base/log_capture.h"
#include "tests/fakes/queue-gateway/auth/signed_tokens.h"

namespace muster::queue_gateway::auth {
namespace {

using ::testing::HasSubstr;
using testing::kEs256Token;
using testing::kRs256Token;
using testing::kRs256TokenWithoutKeyId;
using testing::TwoKeys;

constexpr int64_t kNowUnix = 1'320'969'600;  // where a FakeClock starts

std::string Claims(absl::string_view replaced = "", absl::string_view by = "") {
  std::string claims = absl::StrCat(
      R"({"iss":"https://sts.windows.net/c3/","aud":"https://storage.azure.com","nbf":)", kNowUnix,
      R"(,"exp":)", kNowUnix + 3600, "}");
  if (!replaced.empty()) claims = absl::StrReplaceAll(claims, {{replaced, by}});
  return claims;
}

std::string TokenOf(absl::string_view header, absl::string_view claims) {
  return absl::StrCat(absl::WebSafeBase64Escape(header), ".", absl::WebSafeBase64Escape(claims),
                      ".c2ln");
}

std::string TokenOf(absl::string_view claims) { return TokenOf(R"({"alg":"RS256"})", claims); }

class BearerTest : public ::testing::Test {
 protected:
  absl::Status Check(absl::string_view token, BearerOptions options = {}) {
    const auto verifier = BearerVerifier::Open(std::move(options), &clock_);
    EXPECT_TRUE(verifier.ok()) << verifier.status();
    return (*verifier)->Check(token, "sally").status();
  }

  BearerOptions WithKeys(const std::string& keys) {
    BearerOptions options;
    options.jwks_file = dir_ / "keys.json";
    std::ofstream(options.jwks_file) << keys;
    return options;
  }

  void ExpectRefused(const absl::Status& status, absl::string_view why) {
    EXPECT_TRUE(absl::IsUnauthenticated(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(std::string(why)));
  }

  base::FakeClock clock_;
  os::TempDir dir_;
};

TEST_F(BearerTest, AcceptsTokensThatAKeyOfTheSetSigned) {
  for (const char* const token : {kRs256Token, kRs256TokenWithoutKeyId, kEs256Token}) {
    EXPECT_TRUE(Check(token, WithKeys(TwoKeys())).ok()) << token;
  }
}

TEST_F(BearerTest, RefusesATokenOfWhichAnyPartIsAnother) {
  for (const char* const token : {kRs256Token, kEs256Token}) {
    const std::vector<std::string> parts = absl::StrSplit(token, '.');
    std::string claims;
    ASSERT_TRUE(absl::WebSafeBase64Unescape(parts[1], &claims));
    for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
             {"sally", "bobby"},
             {"1320973200", "1320973201"},
             {"1320969600", "1320969599"},
             {"/c3/", "/c4/"},
             {"storage.azure.com", "storage.azure.com/"}}) {
      const std::string forged =
          absl::WebSafeBase64Escape(absl::StrReplaceAll(claims, {{from, to}}));
      ExpectRefused(Check(absl::StrCat(parts[0], ".", forged, ".", parts[2]), WithKeys(TwoKeys())),
                    "not signed");
    }
    std::string other = parts[2];
    other[0] = other[0] == 'A' ? 'B' : 'A';
    ExpectRefused(Check(absl::StrCat(parts[0], ".", parts[1], ".", other), WithKeys(TwoKeys())),
                  "not signed");
    ExpectRefused(Check(absl::StrCat(parts[0], ".", parts[1], "."), WithKeys(TwoKeys())),
                  "not signed");
  }
}

TEST_F(BearerTest, RefusesTheSignatureOfAnotherTokenOrAlgorithm) {
  const std::vector<std::string> rsa = absl::StrSplit(kRs256Token, '.');
  const std::vector<std::string> ec = absl::StrSplit(kEs256Token, '.');
  ExpectRefused(Check(absl::StrCat(ec[0], ".", ec[1], ".", rsa[2]), WithKeys(TwoKeys())),
                "not signed");
  ExpectRefused(Check(absl::StrCat(rsa[0], ".", rsa[1], ".", ec[2]), WithKeys(TwoKeys())),
                "not signed");
  // The right signature, by a key of another id.
  const std::string renamed = absl::StrReplaceAll(TwoKeys(), {{"\"r1\"", "\"r2\""}});
  ExpectRefused(Check(kRs256Token, WithKeys(renamed)), "not signed");
  EXPECT_TRUE(Check(kRs256TokenWithoutKeyId, WithKeys(renamed)).ok());
}

TEST_F(BearerTest, RefusesTokensWithoutASignature) {
  for (const char* const header :
       {R"({"alg":"none"})", R"({"alg":"None"})", R"({"alg":"HS256"})", R"({"alg":""})",
        R"({"alg":1})", R"({"typ":"JWT"})", R"({"alg":"RS256","crit":["exp"]})"}) {
    EXPECT_TRUE(absl::IsUnauthenticated(Check(TokenOf(header, Claims())))) << header;
    EXPECT_TRUE(absl::IsUnauthenticated(Check(TokenOf(header, Claims()), WithKeys(TwoKeys()))));
  }
}

TEST_F(BearerTest, SaysThatATokenHasAnotherForm) {
  for (const std::string& token :
       {std::string(), std::string("abc"), std::string("e30.e30"), std::string("e30.e30.e30.e30"),
        std::string("e30.e30.c2ln="), std::string("e30=.e30.c2ln"), std::string("W10.e30.c2ln"),
        std::string("e30.eyJ9.c2ln"), std::string("!.e30.c2ln"), std::string("..")}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Check(token))) << token;
  }
}

TEST_F(BearerTest, IsValidFromItsStartUntilJustBeforeItsExpiry) {
  EXPECT_TRUE(Check(TokenOf(Claims())).ok());
  clock_.StepWallClock(-absl::Nanoseconds(1));
  ExpectRefused(Check(TokenOf(Claims())), "not valid yet");
  clock_.StepWallClock(absl::Hours(1));
  EXPECT_TRUE(Check(TokenOf(Claims())).ok());
  clock_.StepWallClock(absl::Nanoseconds(1));
  ExpectRefused(Check(TokenOf(Claims())), "expired");
}

TEST_F(BearerTest, RefusesTimesThatAreNone) {
  ExpectRefused(Check(TokenOf(Claims("\"exp\"", "\"other\""))), "no exp");
  for (const char* const exp : {"\"1320973200\"", "null", "-1", "1e300", "true", "[]"}) {
    ExpectRefused(Check(TokenOf(Claims("1320973200", exp))), "no exp");
  }
  EXPECT_TRUE(Check(TokenOf(Claims("1320973200", "1320969600.5"))).ok());
  EXPECT_TRUE(Check(TokenOf(Claims("\"nbf\"", "\"other\""))).ok()) << "nbf may be missing";
  ExpectRefused(Check(TokenOf(Claims("\"nbf\":1320969600", "\"nbf\":\"x\""))), "nbf is no time");
}

TEST_F(BearerTest, RefusesOtherIssuers) {
  for (const char* const issuer :
       {"https://sts.windows.net.example/", "http://sts.windows.net/c3/", "", "sts.windows.net"}) {
    ExpectRefused(Check(TokenOf(Claims("https://sts.windows.net/c3/", issuer))), "issuer");
  }
  ExpectRefused(Check(TokenOf(Claims("\"iss\"", "\"other\""))), "issuer");
  BearerOptions exact;
  exact.issuers = {"https://id.example/realm"};
  EXPECT_TRUE(
      Check(TokenOf(Claims("https://sts.windows.net/c3/", "https://id.example/realm")), exact)
          .ok());
  ExpectRefused(
      Check(TokenOf(Claims("https://sts.windows.net/c3/", "https://id.example/realm2")), exact),
      "issuer");
}

TEST_F(BearerTest, RefusesOtherAudiences) {
  const std::string ours = "\"https://storage.azure.com\"";
  for (const char* const audience :
       {"\"https://storage.azure.com/\"", "\"https://sally.queue.core.windows.net\"",
        "\"e406a681-f3d4-42a8-90b6-c2b029497af1\"",
        R"(["https://x","https://storage.azure.com"])"}) {
    EXPECT_TRUE(Check(TokenOf(Claims(ours, audience))).ok()) << audience;
  }
  for (const char* const audience :
       {"\"https://bob.queue.core.windows.net\"", "\"https://storage.azure.com.example\"", "[]",
        "[1]", "\"\"", "null", "{}", "\"https://storage.azure.com//\""}) {
    ExpectRefused(Check(TokenOf(Claims(ours, audience))), "audience");
  }
  ExpectRefused(Check(TokenOf(Claims("\"aud\"", "\"other\""))), "audience");
}

TEST_F(BearerTest, WithstandsWhatIsNestedDeeply) {
  const size_t depth = 5000;  // as much as fits into a header
  const std::string nested = std::string(depth, '[') + std::string(depth, ']');
  ExpectRefused(Check(TokenOf(Claims("\"https://storage.azure.com\"", nested))), "audience");
}

TEST_F(BearerTest, LeavesNoErrorOfOpenSslBehind) {
  const auto set = KeySet::Parse(TwoKeys());
  for (const JwsAlgorithm algorithm : {JwsAlgorithm::kRs256, JwsAlgorithm::kEs256}) {
    EXPECT_FALSE(set->Verifies(algorithm, "", "text", std::string(64, 'x')));
    EXPECT_FALSE(set->Verifies(algorithm, "", "text", std::string(256, 'x')));
    EXPECT_EQ(ERR_peek_error(), 0U);
  }
  EXPECT_TRUE(KeySet::Parse(absl::StrReplaceAll(TwoKeys(), {{testing::kEcX, testing::kEcY}})).ok());
  EXPECT_EQ(ERR_peek_error(), 0U);
}

TEST_F(BearerTest, TakesANewKeySetWithoutARestart) {
  const base::LogCapture log;
  const BearerOptions options = WithKeys(absl::StrReplaceAll(TwoKeys(), {{"\"r1\"", "\"r2\""}}));
  const auto verifier = BearerVerifier::Open(options, &clock_);
  ASSERT_TRUE(verifier.ok()) << verifier.status();
  EXPECT_FALSE((*verifier)->Check(kRs256Token, "sally").ok());
  WithKeys(TwoKeys() + "\n");
  clock_.Advance(kFileRefresh);
  EXPECT_TRUE((*verifier)->Check(kRs256Token, "sally").ok());
}

TEST_F(BearerTest, RefusesToStartWithoutAKeySetThatItWasPromised) {
  BearerOptions options;
  options.jwks_file = dir_ / "missing.json";
  EXPECT_TRUE(absl::IsInvalidArgument(BearerVerifier::Open(options, &clock_).status()));
}

TEST(KeySetTest, RefusesWhatIsNoKeySet) {
  std::string many;
  for (size_t i = 0; i <= kMaxJwksKeys; ++i) absl::StrAppend(&many, i == 0 ? "" : ",", "{}");
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("[]"), std::string("{}"),
        std::string(R"({"keys":{}})"), std::string(R"({"keys":[]})"),
        std::string(R"({"keys":[1]})"), absl::StrCat(R"({"keys":[)", many, "]}")}) {
    EXPECT_TRUE(absl::IsInvalidArgument(KeySet::Parse(text).status())) << text;
  }
}

TEST(KeySetTest, PassesByKeysThatItCannotUse) {
  EXPECT_EQ(KeySet::Parse(TwoKeys())->size(), 2U);
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"\"EC\"", "\"OKP\""},
           {"P-256", "P-384"},
           {testing::kEcX, testing::kEcY},  // no point of the curve
           {testing::kEcX, "AA"},
           {testing::kRsaModulus, "AQAB"},  // too short to trust
           {"\"sig\"", "\"enc\""},
           {"\"e\":\"AQAB\"", "\"e\":1"},
           {"\"kid\":\"r1\"", "\"alg\":\"RS512\""}}) {
    const auto set = KeySet::Parse(absl::StrReplaceAll(TwoKeys(), {{from, to}}));
    ASSERT_TRUE(set.ok()) << from;
    EXPECT_EQ(set->size(), 1U) << from;
  }
}

}  // namespace
}  // namespace muster::queue_gateway::auth
