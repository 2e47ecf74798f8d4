// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/auth/shared_key.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "services/queue-gateway/auth/limits.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/queue-gateway/auth/signed_requests.h"

namespace muster::queue_gateway::auth {
namespace {

using testing::Fields;
using testing::FullRequest;
using ::testing::HasSubstr;
using testing::kNow;
using testing::LiteRequest;
using testing::RemoveField;
using testing::RequestOf;
using testing::Sally;
using testing::SetField;
using ::testing::SizeIs;

Verdict Check(const SignedRequest& request, absl::Time now = base::FakeClock().Now()) {
  const auto credential = ParseAuthorization(request.Header("authorization").value_or(""));
  if (!credential.ok()) return Refuse(errors::ErrorCode::kInvalidAuthenticationInfo, "");
  return CheckSharedKey(request, *credential, Sally(), now);
}

Fields Signed(absl::string_view scheme_and_mac, Fields headers) {
  headers.emplace_back("authorization", std::string(scheme_and_mac));
  return headers;
}

TEST(SharedKeyTest, AcceptsARequestThatSignsEverything) {
  const Verdict verdict = Check(FullRequest());
  EXPECT_TRUE(verdict.ok()) << verdict.detail;
  EXPECT_EQ(verdict.scheme, Scheme::kSharedKey);
}

TEST(SharedKeyTest, AcceptsTheSecondKey) {
  SignedRequest request = FullRequest();
  SetField(&request.headers, "authorization", testing::kFullBySecondKey);
  EXPECT_TRUE(Check(request).ok());
}

// A client of 2019 writes its dates as it last read one.
TEST(SharedKeyTest, TakesADateInUtcByThatName) {
  const auto check = [](const char* date) {
    return CheckDate(RequestOf("GET", "/", {}, {{"x-ms-date", date}}), base::FakeClock().Now());
  };
  EXPECT_TRUE(check("Fri, 11 Nov 2011 00:00:00 UTC").ok());
  EXPECT_FALSE(check("Fri, 11 Nov 2011 00:00:00 CET").ok());
  EXPECT_FALSE(check("Fri, 11 Nov 2011 01:00:00 UTC").ok());
}

TEST(SharedKeyTest, AcceptsTheLiteForm) {
  const Verdict verdict = Check(LiteRequest());
  EXPECT_TRUE(verdict.ok()) << verdict.detail;
  EXPECT_EQ(verdict.scheme, Scheme::kSharedKeyLite);
}

TEST(SharedKeyTest, AcceptsThePathStyleAndTheHostStyle) {
  EXPECT_TRUE(Check(RequestOf("GET", "/", {{"comp", "list"}},
                              Signed("SharedKey sally:LLYb5VnkXVxliOs+rtyxOJynojsuTl9qRa9RD3Z+8qE=",
                                     {{"x-ms-date", kNow}, {"x-ms-version", "2025-05-05"}})))
                  .ok());
}

TEST(SharedKeyTest, AcceptsTheSecondaryWithItsSuffixAndWithout) {
  for (const char* const mac : {"ds1Y2igcTAYhdzKCQUgPl7AOObrmkjFIdch9pcbsRnY=",
                                "XIwMLvc+gklYReJfoXr2uPOAabxjjr3Qj8n5kURlCjk="}) {
    SignedRequest request =
        RequestOf("GET", "/sally-secondary/", {{"restype", "service"}, {"comp", "stats"}},
                  Signed(absl::StrCat("SharedKey sally:", mac),
                         {{"x-ms-date", kNow}, {"x-ms-version", "2025-05-05"}}));
    request.is_secondary = true;
    EXPECT_TRUE(Check(request).ok()) << mac;
  }
}

TEST(SharedKeyTest, HasAnEmptyLengthOrZeroByTheVersion) {
  const auto create = [](const char* version, const char* mac) {
    return RequestOf(
        "PUT", "/sally/my-queue", {},
        Signed(absl::StrCat("SharedKey sally:", mac),
               {{"x-ms-date", kNow}, {"x-ms-version", version}, {"content-length", "0"}}));
  };
  EXPECT_TRUE(Check(create("2015-02-21", "G0zoYG9CY/f7VNqG3M9LgWgP5MKEyks7F9hlhnEuJUA=")).ok());
  EXPECT_TRUE(Check(create("2014-02-14", "WXfPCsrUOak/negKn8mD4vR7i3A+yxpTCKB4aXu+67I=")).ok());
}

// The three requests that the description of 2008 shows, down to the blank after the colon.
TEST(SharedKeyTest, AcceptsTheRequestsOf2008) {
  const SignedRequest requests[] = {
      RequestOf("PUT", "/myqueue/messages", {{"messagettl", "3600"}},
                Signed("SharedKey sally: FFYutbPuWcizYDxtjN3Y0EDTZ7WNIhGeh7Gr61qOMq0=",
                       {{"content-length", "3900"},
                        {"content-md5", "HUXZLQLMul/KZ5KDcJPcOA=="},
                        {"x-ms-date", kNow}})),
      RequestOf("GET", "/myqueue/messages", {{"numofmessages", "2"}, {"visibilitytimeout", "60"}},
                Signed("SharedKey sally: NhvGlp5Up/aZUyKWJbJ/Q2wnn0RGPc3fLekNgjCxIGg=",
                       {{"x-ms-date", kNow}})),
      RequestOf("DELETE", "/sally/myqueue/messages/6012a834-f3cf-410f-bddd-dc29ee36de2a",
                {{"popreceipt", "AAEAAAD////"}, {"timeout", "30"}},
                Signed("SharedKey sally: 74uB1M6aYifeV9eEIsky90K/NIrmwDYezBEQa71kvYo=",
                       {{"content-type", "binary/octet-stream"}, {"x-ms-date", kNow}}))};
  for (const SignedRequest& request : requests) {
    const Verdict verdict = Check(request);
    EXPECT_TRUE(verdict.ok()) << verdict.detail;
    EXPECT_EQ(verdict.scheme, Scheme::kSharedKey2008);
  }
  // With a version, the request would have to sign today's form.
  SignedRequest modern = requests[1];
  SetField(&modern.headers, "x-ms-version", "2025-05-05");
  EXPECT_FALSE(Check(modern).ok());
}

using Change = std::function<void(SignedRequest*)>;

std::vector<std::pair<std::string, Change>> ChangesOfHeaders(const SignedRequest& request) {
  std::vector<std::pair<std::string, Change>> changes;
  for (const auto& [name, value] : request.headers) {
    if (name == "authorization") continue;
    const std::string header = name;
    const std::string other = header == "x-ms-date" ? "Fri, 11 Nov 2011 00:00:01 GMT"
                              : header == "date"    ? "Fri, 11 Nov 2011 00:00:02 GMT"
                                                    : value + "x";
    changes.emplace_back("another " + header,
                         [=](SignedRequest* r) { SetField(&r->headers, header, other); });
    changes.emplace_back("no " + header,
                         [=](SignedRequest* r) { RemoveField(&r->headers, header); });
    changes.emplace_back("two of " + header,
                         [=](SignedRequest* r) { r->headers.emplace_back(header, "x"); });
  }
  return changes;
}

std::vector<std::pair<std::string, Change>> ChangesOfParameters(const SignedRequest& request) {
  std::vector<std::pair<std::string, Change>> changes;
  for (const auto& [name, value] : request.query) {
    const std::string parameter = name;
    changes.emplace_back("another " + parameter,
                         [=](SignedRequest* r) { SetField(&r->query, parameter, "x"); });
    changes.emplace_back("no " + parameter,
                         [=](SignedRequest* r) { RemoveField(&r->query, parameter); });
    changes.emplace_back("two of " + parameter,
                         [=](SignedRequest* r) { r->query.emplace_back(parameter, "x"); });
  }
  return changes;
}

void ExpectAllRefused(const SignedRequest& request,
                      const std::vector<std::pair<std::string, Change>>& changes) {
  ASSERT_TRUE(Check(request).ok());
  for (const auto& [what, change] : changes) {
    SignedRequest changed = request;
    change(&changed);
    EXPECT_EQ(Check(changed).code, errors::ErrorCode::kAuthenticationFailed) << what;
  }
}

TEST(SharedKeyTest, RefusesAChangeOfAnyFieldThatIsSigned) {
  const SignedRequest request = FullRequest();
  auto changes = ChangesOfHeaders(request);
  for (auto& change : ChangesOfParameters(request)) changes.push_back(std::move(change));
  changes.emplace_back("another method", [](SignedRequest* r) { r->method = "GET"; });
  changes.emplace_back("another path", [](SignedRequest* r) { r->raw_path += "x"; });
  changes.emplace_back("another account", [](SignedRequest* r) { r->account = "bob"; });
  changes.emplace_back("one more x-ms-* header",
                       [](SignedRequest* r) { r->headers.emplace_back("x-ms-meta-b", "1"); });
  changes.emplace_back("one more parameter",
                       [](SignedRequest* r) { r->query.emplace_back("peekonly", ""); });
  changes.emplace_back("an encoded letter", [](SignedRequest* r) {
    r->raw_path = absl::StrReplaceAll(r->raw_path, {{"my-queue", "my%2Dqueue"}});
  });
  changes.emplace_back("letters of another case",
                       [](SignedRequest* r) { SetField(&r->headers, "x-ms-meta-owner", "sally"); });
  changes.emplace_back("the plus as a blank",
                       [](SignedRequest* r) { SetField(&r->query, "popreceipt", "AgAA w/x="); });
  ExpectAllRefused(request, changes);
}

TEST(SharedKeyTest, RefusesAChangeOfAnyFieldThatTheLiteFormSigns) {
  const SignedRequest request = LiteRequest();
  auto changes = ChangesOfHeaders(request);
  changes.emplace_back("another method", [](SignedRequest* r) { r->method = "GET"; });
  changes.emplace_back("another path", [](SignedRequest* r) { r->raw_path += "x"; });
  changes.emplace_back("another comp",
                       [](SignedRequest* r) { SetField(&r->query, "comp", "acl"); });
  changes.emplace_back("no comp", [](SignedRequest* r) { RemoveField(&r->query, "comp"); });
  changes.emplace_back("as the full form", [](SignedRequest* r) {
    const std::string header = *r->Header("authorization");
    SetField(&r->headers, "authorization", absl::StrReplaceAll(header, {{"Lite", ""}}));
  });
  ExpectAllRefused(request, changes);
}

// What is signed stays the same text, but two parameters have become one.
TEST(SharedKeyTest, RefusesAParameterThatHidesAnother) {
  SignedRequest request = FullRequest();
  RemoveField(&request.query, "timeout");
  SetField(&request.query, "popreceipt", "AgAA+w/x=\ntimeout:30");
  ASSERT_EQ(StringsToSign(request, Scheme::kSharedKey),
            StringsToSign(FullRequest(), Scheme::kSharedKey));
  const Verdict verdict = Check(request);
  EXPECT_EQ(verdict.code, errors::ErrorCode::kAuthenticationFailed);
  EXPECT_THAT(verdict.detail, HasSubstr("cannot be signed"));
}

TEST(SharedKeyTest, LeavesUnsignedHeadersAlone) {
  SignedRequest request = FullRequest();
  request.headers.emplace_back("user-agent", "test");
  request.headers.emplace_back("host", "127.0.0.1:10001");
  EXPECT_TRUE(Check(request).ok());
}

TEST(SharedKeyTest, RefusesASignatureInAnyOtherBase64) {
  for (const char* const mac : {"ukG1eBLAWTNtBUjrarichN6oCo1kvQXOifkaYEwG5SU",
                                "ukG1eBLAWTNtBUjrarichN6oCo1kvQXOifkaYEwG5SU==",
                                "ukG1eBLAWTNtBUjrarichN6oCo1kvQXOifkaYEwG5SV=",
                                "ukG1eBLAWTNtBUjrarichN6oCo1kvQXOifkaYEwG5S=", "ukG1", "=", "!"}) {
    SignedRequest request = FullRequest();
    SetField(&request.headers, "authorization", absl::StrCat("SharedKey sally:", mac));
    EXPECT_EQ(Check(request).code, errors::ErrorCode::kAuthenticationFailed) << mac;
  }
}

TEST(SharedKeyTest, RefusesAnAuthorizationOfAnotherForm) {
  for (const char* const value : {"SharedKey", "SharedKey sally", "SharedKey :abcd",
                                  "SharedKey sally:", "SharedKey sally: ", " ", ""}) {
    SignedRequest request = FullRequest();
    SetField(&request.headers, "authorization", value);
    EXPECT_EQ(Check(request).code, errors::ErrorCode::kInvalidAuthenticationInfo) << value;
  }
  const std::string endless(kMaxAuthorizationBytes + 1, 'a');
  EXPECT_FALSE(ParseAuthorization(absl::StrCat("SharedKey ", endless)).ok());
}

TEST(SharedKeyTest, TakesTheSchemeInAnyLetterCase) {
  SignedRequest request = FullRequest();
  const std::string value = *request.Header("authorization");
  SetField(&request.headers, "authorization",
           absl::StrReplaceAll(value, {{"SharedKey ", " sharedKEY \t "}}));
  EXPECT_TRUE(Check(request).ok());
}

TEST(SharedKeyTest, RefusesTheSignatureOfAnotherAccount) {
  SignedRequest request = FullRequest();
  const std::string value = *request.Header("authorization");
  SetField(&request.headers, "authorization", absl::StrReplaceAll(value, {{"sally", "bob"}}));
  const Verdict verdict = Check(request);
  EXPECT_EQ(verdict.code, errors::ErrorCode::kAuthenticationFailed);
  EXPECT_EQ(verdict.http_status, 403);
}

TEST(SharedKeyTest, ShowsWhatTheServerSigned) {
  SignedRequest request = FullRequest();
  SetField(&request.headers, "x-ms-meta-owner", "Bob");
  const Verdict verdict = Check(request);
  EXPECT_THAT(verdict.detail, HasSubstr("'PUT\\nde\\ngzip\\n17\\n"));
  EXPECT_THAT(verdict.detail, HasSubstr("x-ms-meta-owner:Bob\\n"));
  SetField(&request.headers, "x-ms-meta-owner", std::string(2 * kMaxDetailBytes, 'b'));
  EXPECT_LE(Check(request).detail.size(), kMaxDetailBytes);
}

TEST(SharedKeyTest, TriesABoundedNumberOfForms) {
  SignedRequest request = FullRequest();
  request.is_secondary = true;
  request.raw_path = "/sally-secondary/my-queue";
  SetField(&request.headers, "x-ms-meta-owner", "a  b");
  SetField(&request.headers, "x-ms-meta-ab", "1");
  SetField(&request.headers, "x-ms-meta-a-c", "2");
  EXPECT_THAT(StringsToSign(request, Scheme::kSharedKey), SizeIs(kMaxStringsToSign));
}

// The window is tried on a request that is signed well, so that only its age decides.
TEST(SharedKeyTest, RefusesADateOutsideOfTheWindow) {
  const absl::Time now = base::FakeClock().Now();
  const absl::Duration step = absl::Nanoseconds(1);
  EXPECT_TRUE(Check(FullRequest(), now + kReplayWindow).ok());
  EXPECT_FALSE(Check(FullRequest(), now + kReplayWindow + step).ok());
  EXPECT_TRUE(Check(FullRequest(), now - kReplayWindow).ok());
  EXPECT_FALSE(Check(FullRequest(), now - kReplayWindow - step).ok());
  EXPECT_THAT(Check(FullRequest(), now + absl::Hours(1)).detail, HasSubstr("more than 15m"));
}

TEST(SharedKeyTest, AcceptsDateAloneAndGivesXMsDateTheWord) {
  const SignedRequest request =
      RequestOf("GET", "/sally/", {{"comp", "list"}},
                Signed("SharedKey sally:E4IuMg2bGlWiKmETfNk0EoTvXDQosJMrhi/IKu6Sk08=",
                       {{"date", kNow}, {"x-ms-version", "2025-05-05"}}));
  EXPECT_TRUE(Check(request).ok());

  const absl::Time now = base::FakeClock().Now();
  const auto dated = [](Fields headers) { return RequestOf("GET", "/", {}, std::move(headers)); };
  const char* const old = "Thu, 10 Nov 2011 00:00:00 GMT";
  EXPECT_TRUE(CheckDate(dated({{"date", old}, {"x-ms-date", kNow}}), now).ok());
  EXPECT_FALSE(CheckDate(dated({{"date", kNow}, {"x-ms-date", old}}), now).ok());
}

TEST(SharedKeyTest, RefusesARequestWithoutADate) {
  const absl::Time now = base::FakeClock().Now();
  EXPECT_THAT(std::string(CheckDate(RequestOf("GET", "/", {}, {}), now).message()),
              HasSubstr("no date"));
  for (const char* const text :
       {"", "yesterday", "2011-11-11T00:00:00Z", "Fri, 11 Nov 2011 00:00:00", "infinite-future",
        "Fri, 11 Nov 2011 00:00:00 CET", "Fri, 11 Nov 2011 00:00:00 GMT ",
        "Friday, 11-Nov-11 00:00:00 GMT", "Fri, 32 Nov 2011 00:00:00 GMT"}) {
    EXPECT_FALSE(CheckDate(RequestOf("GET", "/", {}, {{"x-ms-date", text}}), now).ok()) << text;
  }
}

}  // namespace
}  // namespace muster::queue_gateway::auth
