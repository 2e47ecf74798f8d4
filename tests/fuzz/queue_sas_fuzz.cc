// SPDX-License-Identifier: Apache-2.0

// The query of a request with a SAS: name=value, separated by "&" and not encoded. The signature is
// made here, so that what it covers is judged, too.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "services/queue-gateway/auth/accounts.h"
#include "services/queue-gateway/auth/ip_range.h"
#include "services/queue-gateway/auth/limits.h"
#include "services/queue-gateway/auth/mac.h"
#include "services/queue-gateway/auth/sas.h"
#include "services/queue-gateway/auth/sas_time.h"
#include "services/queue-gateway/auth/user_delegation.h"
#include "tests/fuzz/property.h"

namespace muster::fuzz {
namespace {

using namespace queue_gateway::auth;  // what is under test

const Account& Dev() {
  static const auto* const account = new Account(DevelopmentAccount());
  return *account;
}

SignedRequest RequestOf(absl::string_view text) {
  SignedRequest request;
  request.method = "GET";
  request.raw_path = "/devstoreaccount1/q/messages";
  request.account = Dev().name;
  request.queue = "q";
  request.peer_ip = "192.0.2.1";
  for (const absl::string_view part : absl::StrSplit(text, '&')) {
    const std::pair<std::string, std::string> field = absl::StrSplit(part, absl::MaxSplits('=', 1));
    request.query.push_back(field);
  }
  request.query.emplace_back("sig", "AAAA");
  return request;
}

void CheckValues(const SignedRequest& request) {
  for (const auto& [name, value] : request.query) {
    const auto time = ParseSasTime(value);
    if (time.has_value()) {
      Must(*time > absl::InfinitePast() && *time < absl::InfiniteFuture(), "a time is finite");
      Must(value.size() >= 10, "a time has a day");
    }
    const auto range = ParseIpRange(value);
    if (range.has_value()) Must(range->Contains(range->first), "a range has its first address");
    if (range.has_value()) Must(range->Contains(range->last), "a range has its last address");
  }
}

// How many fields the SAS signs: were one able to look like two, there would be more.
void CheckText(const SasToken& token, const std::string& text) {
  const auto lines = std::count(text.begin(), text.end(), '\n') + 1;
  if (token.is_account) {
    Must(lines == (token.version >= "2020-12-06" ? 11 : 10), "an account SAS signs its fields");
  } else if (token.is_delegation) {
    Must(lines == 15, "a user delegation SAS signs its fields");
  } else {
    Must(lines == (token.version >= "2015-04-05" ? 8 : 6), "a service SAS signs its fields");
  }
}

// What signs the SAS: the account's key, or one that was made of it.
std::string KeyOf(const SasToken& token) {
  const std::string& key = Dev().keys[0];
  if (!token.is_delegation) return key;
  return UserDelegationKey({{token.key_object_id, token.key_tenant_id},
                            token.key_start,
                            token.key_expiry,
                            token.key_service,
                            token.key_version},
                           Dev().name, key);
}

}  // namespace
}  // namespace muster::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::fuzz;
  SignedRequest request = RequestOf(Text(data, size));
  CheckValues(request);
  const auto token = ParseSas(request);
  if (!token.ok()) {
    Must(absl::IsInvalidArgument(token.status()), "a wrong SAS is InvalidArgument");
    return 0;
  }
  const std::string text = SasStringToSign(*token, Dev().name, request.queue);
  CheckText(*token, text);
  const auto policies = [&] {
    return std::vector<StoredPolicy>{{token->identifier, "", "2999-01-01", "raup"}};
  };
  const auto check = [&] {
    return CheckSas(request, Operation::kGetMessages, Dev(), policies, absl::UnixEpoch());
  };
  Must(!check().ok(), "a SAS without its signature is refused");
  request.query.back().second = absl::Base64Escape(HmacSha256(KeyOf(*token), text));
  const Verdict verdict = check();
  Must(verdict.detail.size() <= kMaxDetailBytes, "a detail is bounded");
  Must(!absl::StrContains(verdict.detail, "not that of this SAS"), "its own signature is right");
  return 0;
}
