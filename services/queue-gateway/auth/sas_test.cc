// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/auth/sas.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "services/queue-gateway/auth/mac.h"
#include "services/queue-gateway/auth/permissions.h"
#include "services/queue-gateway/auth/sas_time.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/base/log_capture.h"
#include "tests/fakes/queue-gateway/auth/signed_requests.h"

namespace muster::queue_gateway::auth {
namespace {

using testing::AccountSas;
using testing::Fields;
using ::testing::HasSubstr;
using testing::PolicySas;
using testing::RemoveField;
using testing::Sally;
using testing::SasRequest;
using testing::ServiceSas;
using testing::SetField;

class SasTest : public ::testing::Test {
 protected:
  Verdict Check(const SignedRequest& request, Operation operation = Operation::kGetMessages) {
    const PolicyReader reader = [this]() -> absl::StatusOr<std::vector<StoredPolicy>> {
      ++reads_;
      if (!read_error_.ok()) return read_error_;
      return policies_;
    };
    return CheckSas(request, operation, Sally(), reader, now_);
  }
  Verdict Check(Fields query, Operation operation = Operation::kGetMessages) {
    return Check(SasRequest(std::move(query)), operation);
  }

  // The query with a signature by the second key.
  static Fields Sign(Fields query) {
    SetField(&query, "sig", "AAAA");
    const auto token = ParseSas(SasRequest(query));
    EXPECT_TRUE(token.ok()) << token.status();
    const std::string text = SasStringToSign(*token, "sally", "my-queue");
    SetField(&query, "sig", absl::Base64Escape(HmacSha256(Sally().keys[1], text)));
    return query;
  }
  // ServiceSas or AccountSas with one other field, and signed again.
  static Fields With(Fields query, absl::string_view name, absl::string_view value) {
    SetField(&query, name, value);
    return Sign(std::move(query));
  }

  void ExpectFailed(const Verdict& verdict, absl::string_view detail) {
    EXPECT_EQ(verdict.code, errors::ErrorCode::kAuthenticationFailed);
    EXPECT_EQ(verdict.http_status, 403);
    EXPECT_THAT(verdict.detail, HasSubstr(std::string(detail)));
  }

  absl::Time now_ = base::FakeClock().Now();
  std::vector<StoredPolicy> policies_;
  absl::Status read_error_;
  int reads_ = 0;
};

TEST_F(SasTest, AcceptsAServiceSas) {
  const Verdict verdict = Check(ServiceSas());
  EXPECT_TRUE(verdict.ok()) << verdict.detail;
  EXPECT_EQ(verdict.scheme, Scheme::kServiceSas);
  EXPECT_EQ(verdict.service_version, "2025-05-05");
  EXPECT_EQ(reads_, 0) << "no stored access policy was named";
}

TEST_F(SasTest, AcceptsAnAccountSas) {
  const Verdict verdict = Check(AccountSas());
  EXPECT_TRUE(verdict.ok()) << verdict.detail;
  EXPECT_EQ(verdict.scheme, Scheme::kAccountSas);
}

TEST_F(SasTest, SignsTheScopeFromTheVersionThatHasIt) {
  Fields scoped = AccountSas();
  SetField(&scoped, "sv", "2020-12-06");
  SetField(&scoped, "ses", "scope");
  SetField(&scoped, "sig", "tvxZYIbk1EwzNQXrRu4jIB2RsEhjkBnn42mQZEAPzVA=");
  EXPECT_TRUE(Check(scoped).ok());
  SetField(&scoped, "ses", "other");
  ExpectFailed(Check(scoped), "2020-12-06\\nother\\n'");

  Fields before = AccountSas();
  SetField(&before, "sv", "2020-10-02");
  SetField(&before, "sig", "TxhiaB3NdjEJ7mt5Hk7Qb4ZxvLkpe7yNpS1rMXppmW0=");
  EXPECT_TRUE(Check(before).ok());
}

TEST_F(SasTest, SignsWhatOlderVersionsSigned) {
  EXPECT_TRUE(Check(Fields{{"sp", "r"},
                           {"se", "2011-11-12"},
                           {"sv", "2015-02-21"},
                           {"sig", "n2PI8WWRcg8OMwccRk+S+IcL1a5472XRHfcHgGoWVhc="}},
                    Operation::kPeekMessages)
                  .ok());
  Fields old = {{"sp", "r"},
                {"se", "2011-11-12"},
                {"sv", "2014-02-14"},
                {"sig", "7h9Jbm9WyrK11cSD6AIY7IS+dOIcK6YwoKSncKUJBcY="}};
  EXPECT_TRUE(Check(old, Operation::kPeekMessages).ok());
  SetField(&old, "sip", "192.0.2.1");  // which the signature does not cover
  ExpectFailed(Check(old, Operation::kPeekMessages), "without sip and spr");
}

TEST_F(SasTest, RefusesAChangeOfAnyFieldThatAServiceSasSigns) {
  const Fields changes = {{"sp", "rau"},        {"st", "2011-11-10T00:00:01Z"},
                          {"st", ""},           {"se", "2011-11-12T00:00:01Z"},
                          {"sip", "192.0.2.1"}, {"sip", ""},
                          {"spr", "https"},     {"spr", ""},
                          {"sv", "2024-11-04"}, {"si", "readers"}};
  for (const auto& [name, value] : changes) {
    Fields query = ServiceSas();
    SetField(&query, name, value);
    ExpectFailed(Check(query), "not that of this SAS");
    RemoveField(&query, name);
    EXPECT_EQ(Check(query).ok(), name == "si") << name;
  }
  SignedRequest other = SasRequest(ServiceSas());
  other.queue = "my-queue2";
  ExpectFailed(Check(other), "not that of this SAS");
  EXPECT_EQ(reads_, 0) << "policies are read for well-signed requests only";
}

TEST_F(SasTest, RefusesAChangeOfTheIdentifier) {
  policies_ = {{"readers", "", "2011-11-12", "p"}, {"writers", "", "2011-11-12", "raup"}};
  EXPECT_TRUE(Check(PolicySas()).ok());
  Fields query = PolicySas();
  SetField(&query, "si", "writers");
  ExpectFailed(Check(query), "not that of this SAS");
}

TEST_F(SasTest, RefusesAChangeOfAnyFieldThatAnAccountSasSigns) {
  const Fields changes = {{"sp", "rwdlacu"},    {"ss", "bq"},
                          {"srt", "so"},        {"st", "2011-11-10T00:00:01Z"},
                          {"st", ""},           {"se", "2011-11-12T00:00:01Z"},
                          {"sip", "192.0.2.2"}, {"sip", ""},
                          {"spr", "https"},     {"spr", ""},
                          {"sv", "2024-11-04"}, {"ses", "scope"}};
  for (const auto& [name, value] : changes) {
    Fields query = AccountSas();
    SetField(&query, name, value);
    ExpectFailed(Check(query), "not that of this SAS");
  }
  SignedRequest request = SasRequest(AccountSas());
  EXPECT_EQ(CheckSas(request, Operation::kGetMessages, DevelopmentAccount(), nullptr, now_).code,
            errors::ErrorCode::kAuthenticationFailed);
  request.queue = "any-queue";
  EXPECT_TRUE(Check(request).ok()) << "an account SAS is about all queues";
}

TEST_F(SasTest, LeavesOtherParametersAlone) {
  Fields query = ServiceSas();
  query.emplace_back("numofmessages", "32");
  EXPECT_TRUE(Check(query).ok());
}

TEST_F(SasTest, RefusesAParameterThatIsThereTwice) {
  for (const char* const name : {"sig", "sp", "st", "se", "sip", "spr", "sv", "si"}) {
    Fields query = ServiceSas();
    query.emplace_back(name, "x");
    query.emplace_back(name, "x");
    ExpectFailed(Check(query), absl::StrCat(name, " is there twice"));
  }
  Fields shouted = ServiceSas();
  shouted.emplace_back("SIG", shouted.back().second);
  ExpectFailed(Check(shouted), "sig is there twice");
  for (const char* const name : {"ss", "srt", "ses"}) {
    Fields query = AccountSas();
    query.emplace_back(name, "x");
    query.emplace_back(name, "x");
    ExpectFailed(Check(query), absl::StrCat(name, " is there twice"));
  }
}

TEST_F(SasTest, RefusesASignatureInAnyOtherBase64) {
  for (const char* const sig : {"", "=", "hiM5/E22PrFvwWMMB18giaOtEDbV9uxprOYRXlk5Fmk",
                                "hiM5_E22PrFvwWMMB18giaOtEDbV9uxprOYRXlk5Fmk=",
                                "hiM5/E22PrFvwWMMB18giaOtEDbV9uxprOYRXlk5Fml=",
                                " hiM5/E22PrFvwWMMB18giaOtEDbV9uxprOYRXlk5Fmk="}) {
    Fields query = ServiceSas();
    SetField(&query, "sig", sig);
    EXPECT_EQ(Check(query).code, errors::ErrorCode::kAuthenticationFailed) << sig;
  }
}

// A line feed in one field could make it look like two.
TEST_F(SasTest, RefusesAControlCharacter) {
  Fields query = ServiceSas();
  SetField(&query, "sp", "raup\n2011-11-10T00:00:00Z");
  ExpectFailed(Check(query), "sp has a control character");
}

TEST_F(SasTest, RefusesAVersionThatIsNone) {
  for (const char* const version :
       {"", "latest", "2025-05-05T00:00Z", "2025-13-05", "2012-02-11"}) {
    Fields query = ServiceSas();
    SetField(&query, "sv", version);
    ExpectFailed(Check(query), "sv is");
  }
  Fields early = AccountSas();
  SetField(&early, "sv", "2015-02-21");
  ExpectFailed(Check(early), "sv is");
}

TEST_F(SasTest, RefusesKindsThatItDoesNotKnow) {
  Fields delegated = ServiceSas();
  delegated.emplace_back("skoid", "5f6a");
  ExpectFailed(Check(delegated), "without this kind");
  Fields named = AccountSas();
  named.emplace_back("si", "readers");
  ExpectFailed(Check(named), "no si");
}

TEST_F(SasTest, IsValidFromItsStartUntilJustBeforeItsExpiry) {
  const absl::Duration step = absl::Nanoseconds(1);
  for (const Fields& query : {ServiceSas(), AccountSas()}) {
    now_ = *ParseSasTime("2011-11-10T00:00:00Z");
    EXPECT_TRUE(Check(query).ok());
    now_ -= step;
    ExpectFailed(Check(query), "not valid now");
    now_ = *ParseSasTime("2011-11-12T00:00:00Z");
    ExpectFailed(Check(query), "not valid now");
    now_ -= step;
    EXPECT_TRUE(Check(query).ok());
  }
}

TEST_F(SasTest, ReadsEveryFormOfATime) {
  for (const char* const expiry :
       {"2011-11-12", "2011-11-11T00:01Z", "2011-11-11T00:00:01Z", "2011-11-11T00:00:00.0000001Z",
        "2011-11-11T01:00+00:59", "2011-11-10T23:00:01-01:00"}) {
    EXPECT_TRUE(Check(With(ServiceSas(), "se", expiry)).ok()) << expiry;
  }
  EXPECT_TRUE(Check(With(ServiceSas(), "st", "")).ok()) << "without a start it is valid at once";
  ExpectFailed(Check(With(ServiceSas(), "se", "")), "se is missing");
  ExpectFailed(Check(With(ServiceSas(), "se", "infinite-future")), "se is");
  ExpectFailed(Check(With(ServiceSas(), "st", "now")), "st is");
}

TEST_F(SasTest, AllowsTheAddressesThatItNames) {
  for (const auto& [address, is_allowed] :
       std::vector<std::pair<std::string, bool>>{{"192.0.2.0", false},
                                                 {"192.0.2.1", true},
                                                 {"192.0.2.9", true},
                                                 {"192.0.2.10", false},
                                                 {"::ffff:192.0.2.5", true},
                                                 {"2001:db8::1", false},
                                                 {"", false},
                                                 {"unknown", false}}) {
    SignedRequest request = SasRequest(ServiceSas());
    request.peer_ip = address;
    EXPECT_EQ(Check(request).code,
              is_allowed ? std::nullopt
                         : std::optional(errors::ErrorCode::kAuthorizationSourceIpMismatch))
        << address;
  }
  ExpectFailed(Check(With(ServiceSas(), "sip", "192.0.2.9-192.0.2.1")), "sip is");
}

TEST_F(SasTest, AllowsTheProtocolsThatItNames) {
  SignedRequest request = SasRequest(With(ServiceSas(), "spr", "https"));
  EXPECT_EQ(Check(request).code, errors::ErrorCode::kAuthorizationProtocolMismatch);
  request.is_https = true;
  EXPECT_TRUE(Check(request).ok());
  EXPECT_TRUE(Check(With(ServiceSas(), "spr", "")).ok());
  ExpectFailed(Check(With(ServiceSas(), "spr", "http")), "spr is");
}

TEST_F(SasTest, AllowsWithAServiceSasWhatItsPermissionsSay) {
  const std::vector<std::pair<Operation, std::string>> operations = {
      {Operation::kListQueues, ""},           {Operation::kGetServiceProperties, ""},
      {Operation::kSetServiceProperties, ""}, {Operation::kGetServiceStats, ""},
      {Operation::kCreateQueue, ""},          {Operation::kDeleteQueue, ""},
      {Operation::kGetQueueMetadata, "r"},    {Operation::kSetQueueMetadata, ""},
      {Operation::kGetQueueAcl, ""},          {Operation::kSetQueueAcl, ""},
      {Operation::kPutMessage, "a"},          {Operation::kGetMessages, "p"},
      {Operation::kPeekMessages, "r"},        {Operation::kUpdateMessage, "u"},
      {Operation::kDeleteMessage, "p"},       {Operation::kClearMessages, ""},
      {Operation::kGetQueueStats, "r"},       {Operation::kListPoison, "r"},
      {Operation::kRedrivePoison, ""}};
  for (const auto& [operation, needed] : operations) {
    for (const std::string permission : {"r", "a", "u", "p"}) {
      EXPECT_EQ(Check(With(ServiceSas(), "sp", permission), operation).code,
                permission == needed
                    ? std::nullopt
                    : std::optional(errors::ErrorCode::kAuthorizationPermissionMismatch))
          << static_cast<int>(operation) << " by " << permission;
    }
  }
}

TEST_F(SasTest, AllowsWithAnAccountSasWhatItsPermissionsAndTypesSay) {
  struct Row {
    Operation operation;
    std::string type;
    std::string needed;  // any of them
  };
  const std::vector<Row> rows = {
      {Operation::kListQueues, "s", "l"},           {Operation::kGetServiceProperties, "s", "r"},
      {Operation::kSetServiceProperties, "s", "w"}, {Operation::kGetServiceStats, "s", "r"},
      {Operation::kCreateQueue, "c", "cw"},         {Operation::kDeleteQueue, "c", "d"},
      {Operation::kGetQueueMetadata, "c", "r"},     {Operation::kSetQueueMetadata, "c", "w"},
      {Operation::kGetQueueAcl, "c", ""},           {Operation::kSetQueueAcl, "c", ""},
      {Operation::kPutMessage, "o", "a"},           {Operation::kGetMessages, "o", "p"},
      {Operation::kPeekMessages, "o", "r"},         {Operation::kUpdateMessage, "o", "u"},
      {Operation::kDeleteMessage, "o", "p"},        {Operation::kClearMessages, "o", "d"},
      {Operation::kGetQueueStats, "c", "r"},        {Operation::kListPoison, "o", "r"},
      {Operation::kRedrivePoison, "o", "p"}};
  for (const Row& row : rows) {
    for (const std::string permission : {"r", "w", "d", "l", "a", "c", "u", "p"}) {
      const Fields query = With(AccountSas(), "sp", permission);
      EXPECT_EQ(Check(query, row.operation).code,
                HasAnyOf(row.needed, permission)
                    ? std::nullopt
                    : std::optional(errors::ErrorCode::kAuthorizationPermissionMismatch))
          << static_cast<int>(row.operation) << " by " << permission;
    }
    for (const std::string type : {"s", "c", "o"}) {
      if (type == row.type) continue;
      EXPECT_EQ(Check(With(AccountSas(), "srt", type), row.operation).code,
                errors::ErrorCode::kAuthorizationResourceTypeMismatch);
    }
    EXPECT_EQ(Check(With(AccountSas(), "ss", "btf"), row.operation).code,
              errors::ErrorCode::kAuthorizationServiceMismatch);
  }
}

TEST_F(SasTest, RefusesPermissionsThatAreNone) {
  for (const char* const permissions : {"", "x", "rr", "raupx", "R", "r "}) {
    ExpectFailed(Check(With(ServiceSas(), "sp", permissions)), "sp is");
  }
  ExpectFailed(Check(With(AccountSas(), "sp", "")), "sp is");
  ExpectFailed(Check(With(AccountSas(), "ss", "z")), "ss is");
  ExpectFailed(Check(With(AccountSas(), "srt", "soo")), "srt is");
  EXPECT_TRUE(Check(With(AccountSas(), "sp", "rwdxylacupitf")).ok()) << "as other services have it";
}

TEST_F(SasTest, TakesFromTheStoredPolicyWhatItSays) {
  policies_ = {{"others", "", "", ""},
               {"readers", "2011-11-10T00:00:00Z", "2011-11-12T00:00:00.0000000Z", "rp"}};
  EXPECT_TRUE(Check(PolicySas()).ok());
  EXPECT_EQ(reads_, 1);
  EXPECT_EQ(Check(PolicySas(), Operation::kPutMessage).code,
            errors::ErrorCode::kAuthorizationPermissionMismatch);
  now_ = *ParseSasTime("2011-11-12T00:00:00Z");
  ExpectFailed(Check(PolicySas()), "not valid now");
}

TEST_F(SasTest, LeavesToTheSasWhatTheStoredPolicyDoesNotSay) {
  policies_ = {{"readers", "", "2011-11-12", ""}};
  ExpectFailed(Check(PolicySas()), "sp is missing");
  EXPECT_TRUE(Check(With(PolicySas(), "sp", "p")).ok());
  policies_ = {{"readers", "", "", "p"}};
  ExpectFailed(Check(PolicySas()), "se is missing");
  EXPECT_TRUE(Check(With(PolicySas(), "se", "2011-11-12")).ok());
}

TEST_F(SasTest, RefusesASasThatRepeatsItsStoredPolicy) {
  policies_ = {{"readers", "2011-11-10", "2011-11-12", "p"}};
  for (const auto& [name, value] :
       Fields{{"sp", "p"}, {"sp", "raup"}, {"st", "2011-11-10"}, {"se", "2011-11-12"}}) {
    ExpectFailed(Check(With(PolicySas(), name, value)), "repeats");
  }
}

TEST_F(SasTest, RefusesAnIdentifierThatTheQueueDoesNotHave) {
  policies_ = {{"writers", "", "2011-11-12", "p"}, {"reader", "", "2011-11-12", "p"}};
  ExpectFailed(Check(PolicySas()), "no stored access policy");
  read_error_ = absl::NotFoundError("no queue");
  ExpectFailed(Check(PolicySas()), "no stored access policy");
  read_error_ = absl::InvalidArgumentError("no name of a queue");
  ExpectFailed(Check(PolicySas()), "no stored access policy");
}

TEST_F(SasTest, SaysThatPoliciesCannotBeRead) {
  const base::LogCapture log;
  read_error_ = absl::UnavailableError("the store is gone");
  const Verdict verdict = Check(PolicySas());
  EXPECT_EQ(verdict.code, errors::ErrorCode::kInternalError);
  EXPECT_EQ(verdict.http_status, 500);
  EXPECT_EQ(verdict.detail, "");
}

}  // namespace
}  // namespace muster::queue_gateway::auth
