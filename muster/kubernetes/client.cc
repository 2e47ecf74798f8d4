// SPDX-License-Identifier: Apache-2.0
#include "muster/kubernetes/client.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "muster/base/retry.h"
#include "muster/base/status.h"
#include "muster/kubernetes/line_splitter.h"
#include "nlohmann/json.hpp"

namespace muster::kubernetes {

namespace {

constexpr size_t kMaxNameBytes = 253;

// What Kubernetes takes for a path segment, more strictly: objects that muster is about have DNS
// names, and roles may have colons.
bool IsName(absl::string_view name) {
  return name.size() <= kMaxNameBytes && !name.empty() && absl::ascii_isalnum(name.front()) &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return absl::ascii_isalnum(c) || c == '-' || c == '.' || c == ':';
         });
}

absl::Status CheckName(absl::string_view what, const std::string& name) {
  if (name.empty() || IsName(name)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("no ", what, " of Kubernetes: '", name.substr(0, kMaxNameBytes), "'"));
}

}  // namespace

std::string RoleName(const Address& address) {
  return address.subresource.empty()
             ? address.resource.plural
             : absl::StrCat(address.resource.plural, "/", address.subresource);
}

std::string Describe(const Address& address) {
  std::string text = RoleName(address);
  if (!address.name.empty()) absl::StrAppend(&text, " '", address.name, "'");
  if (!address.name_space.empty()) {
    absl::StrAppend(&text, " in namespace '", address.name_space, "'");
  }
  return text;
}

absl::Status Validate(const Address& address) {
  const absl::Status name_space = CheckName("namespace", address.name_space);
  return name_space.ok() ? CheckName("name", address.name) : name_space;
}

std::string PathOf(const Address& address) {
  std::string path = absl::StrCat("/", address.resource.api);
  if (!address.name_space.empty()) absl::StrAppend(&path, "/namespaces/", address.name_space);
  absl::StrAppend(&path, "/", address.resource.plural);
  if (!address.name.empty()) absl::StrAppend(&path, "/", address.name);
  if (!address.subresource.empty()) absl::StrAppend(&path, "/", address.subresource);
  return path;
}

std::string QueryEscaped(absl::string_view value) {
  std::string escaped;
  for (const char c : value) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains("-._~", c)) {
      escaped += c;
    } else {
      absl::StrAppendFormat(&escaped, "%%%02X", static_cast<unsigned char>(c));
    }
  }
  return escaped;
}

const nlohmann::json* FieldAt(const nlohmann::json& root, FieldPath path) {
  const nlohmann::json* at = &root;
  for (const char* const key : path) {
    if (!at->is_object()) return nullptr;
    const auto found = at->find(key);
    if (found == at->end()) return nullptr;
    at = &*found;
  }
  return at;
}

std::string TextAt(const nlohmann::json& root, FieldPath path) {
  const nlohmann::json* const field = FieldAt(root, path);
  return field != nullptr && field->is_string() ? field->get<std::string>() : std::string();
}

int64_t IntegerAt(const nlohmann::json& root, FieldPath path, int64_t fallback) {
  const nlohmann::json* const field = FieldAt(root, path);
  return field != nullptr && field->is_number_integer() ? field->get<int64_t>() : fallback;
}

bool TruthAt(const nlohmann::json& root, FieldPath path) {
  const nlohmann::json* const field = FieldAt(root, path);
  return field != nullptr && field->is_boolean() && field->get<bool>();
}

absl::Time TimeAt(const nlohmann::json& root, FieldPath path) {
  absl::Time time;
  std::string error;
  const std::string text = TextAt(root, path);
  if (!absl::ParseTime(absl::RFC3339_full, text, &time, &error)) return absl::InfinitePast();
  return time;
}

// What an API server's answer means in muster's terms.

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

// For how long the server asks to be left alone, by its header or in its words; zero: it does not.
absl::Duration RequestedRetryDelay(const HttpAnswer& answer) {
  const absl::Duration asked = answer.retry_after.has_value()
                                   ? *answer.retry_after
                                   : absl::Seconds(WordsOf(answer).retry_after_seconds);
  return std::clamp(asked, absl::ZeroDuration(), kMaxPatience);
}

// OK for 2xx. `verb` is the role's: "get", "update".
//   PermissionDenied    403, naming verb and resource; 401, the server does not know us
//   NotFound            404
//   AlreadyExists       409 upon a create
//   Aborted             409: another writer was first; read again
//   OutOfRange          410: what was asked for is too long ago
//   InvalidArgument     400, 422
//   ResourceExhausted   429, with what base::RetryAfter tells
//   Unavailable         5xx, and any other code that a sound server does not answer
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

using nlohmann::json;

std::string TargetOf(const Address& address, const std::string& query) {
  return query.empty() ? PathOf(address) : absl::StrCat(PathOf(address), "?", query);
}

// A name, or what a server sent us, need not be UTF-8; a request must.
std::string Dumped(const json& object) {
  return object.dump(-1, ' ', false, json::error_handler_t::replace);
}

bool MayPass(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsResourceExhausted(status);
}

absl::Duration WaitAfter(int attempt, const absl::Status& failure, absl::Duration asked) {
  return std::max({base::ExponentialBackoff(attempt, kFirstBackoff, kMaxBackoff), asked,
                   base::RetryAfter(failure).value_or(absl::ZeroDuration())});
}

// The seam knows one word for a platform that does not answer.
absl::Status AsUnavailable(const absl::Status& status, const std::string& what) {
  if (absl::IsDeadlineExceeded(status)) {
    return absl::UnavailableError(absl::StrCat(what, ": no answer: ", status.message()));
  }
  if (absl::IsUnauthenticated(status)) {
    return absl::PermissionDeniedError(absl::StrCat(what, ": ", status.message()));
  }
  return base::Annotate(status, what);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Client>> Client::Open(Access access, base::Clock* clock,
                                                     ClientOptions options) {
  MUSTER_ASSIGN_OR_RETURN(auto http, HttpClient::Open(std::move(access)));
  return std::unique_ptr<Client>(new Client(std::move(http), clock, options));
}

Client::Client(std::unique_ptr<HttpClient> http, base::Clock* clock, ClientOptions options)
    : http_(std::move(http)), clock_(clock), options_(options) {}

absl::StatusOr<json> Client::Get(const Address& address, const std::stop_token& stop) {
  return Run({.verb = "get", .method = "GET", .address = address}, stop);
}

absl::StatusOr<json> Client::List(const Address& address, const std::string& query,
                                  const std::stop_token& stop) {
  return Run({.verb = "list", .method = "GET", .address = address, .query = query}, stop);
}

absl::StatusOr<json> Client::Create(const Address& address, const json& object) {
  return Run({.verb = "create", .method = "POST", .address = address, .body = Dumped(object)}, {});
}

absl::StatusOr<json> Client::Update(const Address& address, const json& object) {
  return Run({.verb = "update", .method = "PUT", .address = address, .body = Dumped(object)}, {});
}

absl::StatusOr<json> Client::Patch(const Address& address, const json& patch) {
  return Run({.verb = "patch",
              .method = "PATCH",
              .address = address,
              .body = Dumped(patch),
              .content_type = "application/merge-patch+json"},
             {});
}

absl::Status Client::Delete(const Address& address) {
  return Run({.verb = "delete", .method = "DELETE", .address = address}, {}).status();
}

absl::StatusOr<json> Client::Run(const Call& call, const std::stop_token& stop) {
  MUSTER_RETURN_IF_ERROR(Validate(call.address));
  const absl::Duration end = clock_->Monotonic() + options_.call_limit;
  for (int attempt = 1;; ++attempt) {
    const absl::Duration left = end - clock_->Monotonic();
    absl::Duration asked;
    auto answer = Attempt(call, std::min(options_.attempt_limit, left), stop, &asked);
    if (answer.ok() || !MayPass(answer.status()) || attempt >= options_.max_attempts) return answer;
    const absl::Duration wait = WaitAfter(attempt, answer.status(), asked);
    if (clock_->Monotonic() + wait >= end) return answer;
    if (!base::SleepUnlessStopped(clock_, wait, stop)) return absl::CancelledError("stopped");
  }
}

absl::StatusOr<json> Client::Attempt(const Call& call, absl::Duration limit,
                                     const std::stop_token& stop, absl::Duration* asked) {
  const std::string what = absl::StrCat(call.verb, " ", Describe(call.address));
  auto answer = http_->Send({.method = call.method,
                             .target = TargetOf(call.address, call.query),
                             .content_type = call.content_type,
                             .body = call.body,
                             .limit = limit},
                            stop);
  if (!answer.ok()) return AsUnavailable(answer.status(), what);
  if (answer->code >= 400) *asked = RequestedRetryDelay(*answer);
  MUSTER_RETURN_IF_ERROR(ToStatus(*answer, call.verb, call.address));
  json parsed = json::parse(answer->body, nullptr, /*allow_exceptions=*/false);
  if (parsed.is_object()) return parsed;
  return absl::UnavailableError(absl::StrCat(what, ": the answer is no JSON object"));
}

absl::Status Client::Watch(const Address& address, const std::string& query, OnEvent on_event,
                           const std::stop_token& stop) {
  MUSTER_RETURN_IF_ERROR(Validate(address));
  const std::string what = absl::StrCat("watch ", Describe(address));
  LineSplitter lines(kMaxEventBytes);
  const auto take = [&](absl::string_view piece) {
    return lines.Take(piece, [&](absl::string_view line) {
      const json event = json::parse(line.begin(), line.end(), nullptr, false);
      if (!event.is_object()) return absl::UnavailableError("an event is no JSON object");
      return on_event(event);
    });
  };
  auto answer = http_->Stream(
      {.target = TargetOf(address, query), .limit = kWatchLength + kWatchGrace}, take, stop);
  if (!answer.ok()) return AsUnavailable(answer.status(), what);
  return ToStatus(*answer, "watch", address);
}

}  // namespace muster::kubernetes
