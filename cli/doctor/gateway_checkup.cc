// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor/gateway_checkup.h"

#include <curl/curl.h>

#include <algorithm>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace muster::cli {
namespace {

// Of a reply; a health listener says a few words.
constexpr size_t kMaxReplyBytes = 256;

struct Reply {
  long status = 0;  // NOLINT(google-runtime-int): libcurl's type
  std::string text;
};

struct EndCurl {
  void operator()(CURL* curl) const { curl_easy_cleanup(curl); }
};

size_t Take(const char* bytes, size_t size, size_t count, void* reply) {
  std::string& text = static_cast<Reply*>(reply)->text;
  text.append(bytes, std::min(size * count, kMaxReplyBytes - text.size()));
  return size * count;
}

absl::StatusOr<Reply> Get(const std::string& url, absl::Duration patience) {
  const std::unique_ptr<CURL, EndCurl> curl(curl_easy_init());
  if (curl == nullptr) return absl::ResourceExhaustedError("libcurl does not start");
  Reply reply;
  curl_easy_setopt(curl.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_PROXY, "");
  curl_easy_setopt(curl.get(), CURLOPT_PROTOCOLS_STR, "http");
  curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT_MS,
                   static_cast<long>(absl::ToInt64Milliseconds(patience)));  // NOLINT
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, &Take);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &reply);
  const CURLcode code = curl_easy_perform(curl.get());
  if (code != CURLE_OK) return absl::UnavailableError(curl_easy_strerror(code));
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &reply.status);
  return reply;
}

Finding CheckGateway(const std::string& address, absl::Duration patience) {
  const std::string what = absl::StrCat("queue gateway ", address);
  const absl::StatusOr<Reply> reply = Get(absl::StrCat("http://", address, "/readyz"), patience);
  if (!reply.ok()) {
    return {Health::kWrong, what,
            absl::StrCat("does not answer: ", std::string(reply.status().message())),
            "check that it runs, and that its --health is this address"};
  }
  const std::string said(absl::StripAsciiWhitespace(reply->text));
  if (reply->status == 200) return {Health::kOk, what, absl::StrCat("is ", said)};
  if (reply->status == 503) {
    return {Health::kWrong, what, absl::StrCat("is not ready: ", said), "its log says why"};
  }
  return {Health::kWrong, what, absl::StrCat("answers ", reply->status),
          "name the address of its --health"};
}

}  // namespace

Findings CheckGateways(const std::vector<std::string>& addresses, absl::Duration patience) {
  Findings findings;
  for (const std::string& address : addresses) {
    findings.push_back(CheckGateway(address, patience));
  }
  return findings;
}

}  // namespace muster::cli
