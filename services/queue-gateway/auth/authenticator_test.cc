// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/auth/authenticator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/queue-gateway/auth/signed_requests.h"
#include "tests/fakes/queue-gateway/auth/signed_tokens.h"

namespace muster::queue_gateway::auth {
namespace {

using testing::FullRequest;
using ::testing::HasSubstr;
using testing::kRs256Token;
using testing::RequestOf;
using testing::Sally;
using testing::SasRequest;
using testing::ServiceSas;
using testing::SetField;
using ::testing::StartsWith;

class AuthenticatorTest : public ::testing::Test {
 protected:
  AuthenticatorTest() { bearer_ = *BearerVerifier::Open({}, &clock_); }

  Verdict Check(const SignedRequest& request, bool with_oauth = true) {
    const Authenticator authenticator(&accounts_, with_oauth ? bearer_.get() : nullptr, &clock_);
    return authenticator.Check(request, Operation::kUpdateMessage, nullptr);
  }

  static SignedRequest TokenRequest(absl::string_view token) {
    SignedRequest request =
        RequestOf("GET", "/sally/", {}, {{"authorization", absl::StrCat("Bearer ", token)}});
    request.is_https = true;
    return request;
  }

  base::FakeClock clock_;
  const FixedAccounts accounts_{{{"sally", Sally()}}};
  std::unique_ptr<BearerVerifier> bearer_;
};

TEST_F(AuthenticatorTest, TakesEachKindOfCredential) {
  EXPECT_EQ(Check(FullRequest()).scheme, Scheme::kSharedKey);
  EXPECT_EQ(Check(testing::LiteRequest()).scheme, Scheme::kSharedKeyLite);
  EXPECT_EQ(Check(SasRequest(ServiceSas())).scheme, Scheme::kServiceSas);
  EXPECT_EQ(Check(SasRequest(testing::AccountSas())).scheme, Scheme::kAccountSas);
  const Verdict verdict = Check(TokenRequest(kRs256Token));
  EXPECT_TRUE(verdict.ok()) << verdict.detail;
  EXPECT_EQ(verdict.scheme, Scheme::kBearer);
}

TEST_F(AuthenticatorTest, GivesAUserDelegationKeyForATokenOnly) {
  const Authenticator authenticator(&accounts_, bearer_.get(), &clock_);
  const auto check = [&](const SignedRequest& request) {
    return authenticator.Check(request, Operation::kGetUserDelegationKey, nullptr);
  };
  EXPECT_TRUE(check(TokenRequest(kRs256Token)).ok());
  EXPECT_THAT(check(FullRequest()).detail, HasSubstr("bearer token"));
  EXPECT_EQ(check(SasRequest(testing::AccountSas())).code,
            errors::ErrorCode::kAuthorizationPermissionMismatch);
}

TEST_F(AuthenticatorTest, SaysThatThereIsNoSuchAccount) {
  SignedRequest request = FullRequest();
  request.account = "bob";
  const Verdict verdict = Check(request);
  EXPECT_EQ(verdict.code, errors::ErrorCode::kResourceNotFound);
  EXPECT_EQ(verdict.http_status, 404);
}

TEST_F(AuthenticatorTest, RefusesARequestWithoutCredentials) {
  SignedRequest request = RequestOf("GET", "/sally/", {{"comp", "list"}}, {});
  EXPECT_EQ(Check(request).http_status, 403);
  EXPECT_EQ(Check(request).www_authenticate, "");
  request.is_https = true;
  EXPECT_EQ(Check(request, /*with_oauth=*/false).http_status, 403);

  const Verdict challenge = Check(request);
  EXPECT_EQ(challenge.code, errors::ErrorCode::kNoAuthenticationInformation);
  EXPECT_EQ(challenge.http_status, 401);
  EXPECT_EQ(challenge.www_authenticate,
            "Bearer authorization_uri=https://login.microsoftonline.com/common/oauth2/authorize "
            "resource_id=https://storage.azure.com");
}

TEST_F(AuthenticatorTest, TakesTokensOverHttpsOnlyAndWhereOAuthIsOn) {
  SignedRequest request = TokenRequest(kRs256Token);
  EXPECT_THAT(Check(request, /*with_oauth=*/false).detail, HasSubstr("off"));
  request.is_https = false;
  const Verdict verdict = Check(request);
  EXPECT_EQ(verdict.code, errors::ErrorCode::kAuthenticationFailed);
  EXPECT_THAT(verdict.detail, HasSubstr("HTTPS"));
}

// A client whose token has expired gets another one after a challenge alone.
TEST_F(AuthenticatorTest, ChallengesWhoHasATokenThatIsNotGood) {
  clock_.StepWallClock(absl::Hours(2));
  for (const char* const token : {kRs256Token, "abc"}) {
    const Verdict refused = Check(TokenRequest(token));
    EXPECT_EQ(refused.code, errors::ErrorCode::kInvalidAuthenticationInfo) << token;
    EXPECT_EQ(refused.http_status, 401);
    EXPECT_THAT(refused.www_authenticate, HasSubstr("authorization_uri="));
    EXPECT_NE(refused.detail, "");
  }
}

TEST_F(AuthenticatorTest, RefusesOtherSchemesAndTwoHeaders) {
  SignedRequest request = FullRequest();
  request.headers.emplace_back("authorization", *request.Header("authorization"));
  EXPECT_EQ(Check(request).code, errors::ErrorCode::kInvalidAuthenticationInfo);
  for (const char* const value : {"Basic c2FsbHk6cHc=", "", "SharedKey", "SharedKeys sally:abcd"}) {
    SetField(&(request = FullRequest()).headers, "authorization", value);
    EXPECT_EQ(Check(request).code, errors::ErrorCode::kInvalidAuthenticationInfo) << value;
  }
}

TEST_F(AuthenticatorTest, JudgesByTheHeaderWhereThereIsASasToo) {
  SignedRequest request = SasRequest(ServiceSas());
  request.headers = {{"authorization", "SharedKey sally:AAAA"}, {"x-ms-date", testing::kNow}};
  EXPECT_FALSE(Check(request).ok());
}

TEST_F(AuthenticatorTest, TakesTheTimeOfItsClock) {
  EXPECT_TRUE(Check(FullRequest()).ok());
  clock_.StepWallClock(kReplayWindow + absl::Nanoseconds(1));
  EXPECT_THAT(Check(FullRequest()).detail, StartsWith("the request's date"));
}

}  // namespace
}  // namespace muster::queue_gateway::auth
