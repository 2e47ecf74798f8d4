#include "muster/kubernetes/client.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/retry_policy.h"
#include "muster/base/sleep.h"
#include "muster/base/status_macros.h"
#include "muster/kubernetes/api_status.h"
#include "muster/kubernetes/line_splitter.h"
#include "nlohmann/json.hpp"

namespace muster::kubernetes {
namespace {

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
  const absl::Duration backoff = std::min(kFirstBackoff * (1 << (attempt - 1)), kMaxBackoff);
  return std::max({backoff, asked, base::RetryAfter(failure).value_or(absl::ZeroDuration())});
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
