#include "muster/kubernetes/api_status.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "muster/base/retry_policy.h"
#include "muster/kubernetes/json_fields.h"
#include "muster/kubernetes/limits.h"
#include "nlohmann/json.hpp"

namespace muster::kubernetes {
namespace {

// How long to stay away when a server says 429 and does not say how long.
constexpr absl::Duration kMinPatience = absl::Seconds(1);
constexpr absl::Duration kMaxPatience = absl::Hours(1);

struct ServerWords {
  std::string message;  // without control characters, not too long
  int64_t retry_after_seconds = 0;
};

ServerWords WordsOf(const HttpAnswer& answer) {
  const auto status = nlohmann::json::parse(answer.body, nullptr, /*allow_exceptions=*/false);
  ServerWords words{TextAt(status, {"message"}),
                    IntegerAt(status, {"details", "retryAfterSeconds"})};
  if (words.message.empty()) words.message = absl::StrCat("HTTP ", answer.code);
  if (words.message.size() > kMaxServerWords) words.message.resize(kMaxServerWords);
  std::replace_if(
      words.message.begin(), words.message.end(),
      [](unsigned char c) { return absl::ascii_iscntrl(c); }, ' ');
  return words;
}

std::string Forbidden(const std::string& verb, const Address& address, const ServerWords& words) {
  return absl::StrCat("this agent may not ", verb, " ", Describe(address),
                      "; its Role lacks verb '", verb, "' on resource '", RoleName(address), "' (",
                      words.message, ")");
}

}  // namespace

absl::Duration RequestedRetryDelay(const HttpAnswer& answer) {
  const absl::Duration asked = answer.retry_after.has_value()
                                   ? *answer.retry_after
                                   : absl::Seconds(WordsOf(answer).retry_after_seconds);
  return std::clamp(asked, absl::ZeroDuration(), kMaxPatience);
}

absl::Status ToStatus(const HttpAnswer& answer, const std::string& verb, const Address& address) {
  if (answer.code >= 200 && answer.code < 300) return absl::OkStatus();
  const ServerWords words = WordsOf(answer);
  const std::string what = absl::StrCat(verb, " ", Describe(address), ": ", words.message);
  switch (answer.code) {
    case 400:
    case 422:
      return absl::InvalidArgumentError(what);
    case 401:
      return absl::PermissionDeniedError(absl::StrCat(
          what,
          "; the API server does not know this agent: its token or certificate is not valid"));
    case 403:
      return absl::PermissionDeniedError(Forbidden(verb, address, words));
    case 404:
      return absl::NotFoundError(
          absl::StrCat("there is no ", Describe(address), ": ", words.message));
    case 409:
      return verb == "create" ? absl::AlreadyExistsError(what) : absl::AbortedError(what);
    case 410:
      return absl::OutOfRangeError(what);
    case 429:
      return base::Throttled(what, std::max(RequestedRetryDelay(answer), kMinPatience));
    default:
      return absl::UnavailableError(what);
  }
}

}  // namespace muster::kubernetes
