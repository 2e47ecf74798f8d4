// SPDX-License-Identifier: Apache-2.0

// Holds authentication to what clients of Azure Queue Storage have sent and signed.
#include "tests/fakes/queue-gateway/auth/recorded_requests.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/queue-gateway/auth/authenticator.h"
#include "services/queue-gateway/auth/mac.h"
#include "services/queue-gateway/protocol/target.h"
#include "tests/fakes/base/fake_clock.h"
#include "tests/fakes/queue-gateway/auth/signed_requests.h"

namespace muster::queue_gateway {
namespace {

using auth::SignedRequest;
using ::testing::Contains;
using ::testing::Not;

struct Recorded {
  std::string client;
  SignedRequest request;
  std::string signed_text;
};

std::string Unescaped(absl::string_view text) { return absl::StrReplaceAll(text, {{"\\n", "\n"}}); }

void SetTarget(absl::string_view text, SignedRequest* request) {
  const auto target = protocol::ParseTarget(text);
  ASSERT_TRUE(target.has_value()) << text;
  request->raw_path = target->raw_path;
  request->query = target->query;
}

Recorded Read(absl::string_view record) {
  Recorded read;
  read.request.account = "devstoreaccount1";
  read.request.peer_ip = "127.0.0.1";
  read.request.queue = "sasq";
  for (const absl::string_view line : absl::StrSplit(record, '\n')) {
    const std::pair<absl::string_view, absl::string_view> named =
        absl::StrSplit(line, absl::MaxSplits(": ", 1));
    if (absl::StartsWith(line, "# ")) {
      read.client = std::string(line.substr(2));
    } else if (named.first == "signed") {
      read.signed_text = Unescaped(named.second);
    } else if (read.request.raw_path.empty()) {
      const size_t blank = line.find(' ');
      const bool has_method = blank != absl::string_view::npos;
      read.request.method = has_method ? std::string(line.substr(0, blank)) : "GET";
      SetTarget(has_method ? std::string(line.substr(blank + 1)) : absl::StrCat("/q?", line),
                &read.request);
    } else {
      read.request.headers.emplace_back(named.first, named.second);
    }
  }
  return read;
}

std::vector<Recorded> ReadAll(absl::string_view text) {
  std::vector<Recorded> all;
  for (const absl::string_view record : absl::StrSplit(text, "\n\n")) all.push_back(Read(record));
  return all;
}

const auth::Account kAccount = auth::DevelopmentAccount();

absl::Time TimeOf(const SignedRequest& request) {
  const auto text = request.Header("x-ms-date").value_or(request.Header("date").value_or(""));
  absl::Time time;
  std::string error;
  EXPECT_TRUE(absl::ParseTime("%a, %d %b %Y %H:%M:%S GMT", text, &time, &error)) << error;
  return time;
}

std::vector<std::string> TextsOf(const SignedRequest& request) {
  return auth::StringsToSign(request, auth::Scheme::kSharedKey);
}

// The requests that differ from it in one thing that is signed.
std::vector<SignedRequest> ChangesOf(const SignedRequest& request) {
  std::vector<SignedRequest> changes;
  const auto change = [&](auto how) {
    SignedRequest changed = request;
    how(&changed);
    changes.push_back(std::move(changed));
  };
  change([](SignedRequest* r) { r->method = "PATCH"; });
  change([](SignedRequest* r) { r->raw_path += "x"; });
  change([](SignedRequest* r) { r->account += "x"; });
  for (size_t i = 0; i < request.headers.size(); ++i) {
    if (request.headers[i].first == "authorization") continue;
    change([i](SignedRequest* r) { r->headers[i].second += "1"; });
    if (request.headers[i].second.empty() || request.headers[i].second == "0") continue;
    change([i](SignedRequest* r) { r->headers.erase(r->headers.begin() + i); });
  }
  for (const char* name :
       {"content-encoding", "content-language", "content-md5", "if-modified-since", "if-match",
        "if-none-match", "if-unmodified-since", "range", "x-ms-extra"}) {
    change([name](SignedRequest* r) { auth::testing::SetField(&r->headers, name, "added"); });
  }
  for (size_t i = 0; i < request.query.size(); ++i) {
    change([i](SignedRequest* r) { r->query[i].second += "1"; });
    change([i](SignedRequest* r) { r->query.erase(r->query.begin() + i); });
  }
  change([](SignedRequest* r) { r->query.emplace_back("added", "1"); });
  return changes;
}

TEST(RecordedRequestsTest, AreAcceptedAlsoWhenTheyAreRepeated) {
  const auth::FixedAccounts accounts{{{kAccount.name, kAccount}}};
  for (const Recorded& recorded : ReadAll(auth::testing::kRecordedRequests)) {
    base::FakeClock clock;
    clock.StepWallClock(TimeOf(recorded.request) - clock.Now());
    const auth::Authenticator authenticator(&accounts, nullptr, &clock);
    EXPECT_THAT(TextsOf(recorded.request), Contains(recorded.signed_text)) << recorded.client;
    // The first client repeats at once what was not answered, with the same date and signature.
    for (int i = 0; i < 2; ++i) {
      const auth::Verdict verdict =
          authenticator.Check(recorded.request, auth::Operation::kGetMessages, nullptr);
      EXPECT_TRUE(verdict.ok()) << recorded.client << ": " << verdict.detail;
    }
  }
}

TEST(RecordedRequestsTest, AreNotThoseThatDifferInAnythingThatIsSigned) {
  for (const Recorded& recorded : ReadAll(auth::testing::kRecordedRequests)) {
    for (const SignedRequest& changed : ChangesOf(recorded.request)) {
      EXPECT_THAT(TextsOf(changed), Not(Contains(recorded.signed_text))) << recorded.client;
    }
  }
}

auth::Verdict CheckSas(const SignedRequest& request) {
  const auto policies = []() -> absl::StatusOr<std::vector<auth::StoredPolicy>> {
    return std::vector<auth::StoredPolicy>{{"pol1", "", "2027-01-01", "raup"},
                                           {"pol2", "", "2027-01-01", "raup"}};
  };
  const absl::Time now = absl::FromCivil(absl::CivilDay(2026, 6, 1), absl::UTCTimeZone());
  return auth::CheckSas(request, auth::Operation::kGetMessages, kAccount, policies, now);
}

TEST(RecordedRequestsTest, HaveSignaturesThatAreAcceptedAndNotWithAnotherValue) {
  const auth::testing::Fields others = {{"sp", "rup"},
                                        {"st", "2026-01-02T00:00:00Z"},
                                        {"se", "2026-12-31T00:00:00Z"},
                                        {"si", "pol2"},
                                        {"sip", "127.0.0.1"},
                                        {"spr", "https,http,"},
                                        {"ss", "bq"},
                                        {"srt", "so"},
                                        {"sv", "2021-01-01"},
                                        {"ses", "x"}};
  for (const Recorded& recorded : ReadAll(auth::testing::kRecordedSas)) {
    const auth::Verdict verdict = CheckSas(recorded.request);
    EXPECT_TRUE(verdict.ok()) << recorded.client << ": " << verdict.detail;
    const auto token = auth::ParseSas(recorded.request);
    ASSERT_TRUE(token.ok()) << token.status();
    EXPECT_EQ(auth::SasStringToSign(*token, kAccount.name, "sasq"), recorded.signed_text);
    for (const auto& [name, value] : recorded.request.query) {
      if (name == "sig") continue;
      SignedRequest changed = recorded.request;
      for (const auto& [other, text] : others) {
        if (other == name) auth::testing::SetField(&changed.query, name, text);
      }
      ASSERT_NE(changed.query, recorded.request.query) << name;
      EXPECT_FALSE(CheckSas(changed).ok()) << recorded.client << " " << name;
    }
  }
}

TEST(RecordedRequestsTest, HaveSignaturesByADelegatedKey) {
  for (const Recorded& recorded : ReadAll(auth::testing::kRecordedDelegations)) {
    const auto token = auth::ParseSas(recorded.request);
    ASSERT_TRUE(token.ok()) << token.status();
    EXPECT_EQ(auth::SasStringToSign(*token, kAccount.name, "sasq"), recorded.signed_text);
    EXPECT_EQ(auth::HmacSha256("a test key", recorded.signed_text), token->mac);
    EXPECT_FALSE(CheckSas(recorded.request).ok()) << "the key is not one of the account";
    for (size_t i = 0; i < recorded.request.query.size(); ++i) {
      SignedRequest changed = recorded.request;
      changed.query[i].second = "2027-01-01";
      if (changed.query[i].first == "sig" || changed.query[i].first == "sr") continue;
      const auto other = auth::ParseSas(changed);
      ASSERT_TRUE(other.ok()) << other.status();
      EXPECT_NE(auth::SasStringToSign(*other, kAccount.name, "sasq"), recorded.signed_text)
          << changed.query[i].first;
    }
  }
}

}  // namespace
}  // namespace muster::queue_gateway
