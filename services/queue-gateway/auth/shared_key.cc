// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/auth/shared_key.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "muster/base/lru_map.h"
#include "muster/base/text.h"
#include "services/queue-gateway/auth/canonical.h"
#include "services/queue-gateway/auth/limits.h"
#include "services/queue-gateway/auth/mac.h"

namespace muster::queue_gateway::auth {

absl::StatusOr<Credential> ParseAuthorization(absl::string_view value) {
  if (value.size() > kMaxAuthorizationBytes) {
    return absl::InvalidArgumentError("the Authorization header is too long");
  }
  value = absl::StripAsciiWhitespace(value);
  const size_t blank = value.find_first_of(" \t");
  if (blank == absl::string_view::npos || blank == 0) {
    return absl::InvalidArgumentError("the Authorization header is not SCHEME PARAMETERS");
  }
  return Credential{absl::AsciiStrToLower(value.substr(0, blank)),
                    std::string(absl::StripAsciiWhitespace(value.substr(blank)))};
}

absl::StatusOr<SharedKeySignature> ParseSharedKeySignature(absl::string_view parameters) {
  const size_t colon = parameters.find(':');
  if (colon == absl::string_view::npos || colon == 0) {
    return absl::InvalidArgumentError("the Authorization header is not SharedKey NAME:SIGNATURE");
  }
  // The examples of 2008 have a blank after the colon.
  const absl::string_view text = absl::StripAsciiWhitespace(parameters.substr(colon + 1));
  if (text.empty()) {
    return absl::InvalidArgumentError("the Authorization header has no signature");
  }
  return SharedKeySignature{std::string(parameters.substr(0, colon)),
                            DecodeBase64(text).value_or("")};
}

Scheme SharedKeySchemeOf(const Credential& credential, const SignedRequest& request) {
  if (credential.scheme == "sharedkeylite") return Scheme::kSharedKeyLite;
  constexpr absl::string_view kFirstOfTodaysForm = "2009-09-19";
  const std::optional<std::string> version = request.Header("x-ms-version");
  if (!version.has_value() || *version < kFirstOfTodaysForm) return Scheme::kSharedKey2008;
  return Scheme::kSharedKey;
}

std::vector<std::string> StringsToSign(const SignedRequest& request, Scheme scheme) {
  const bool is_full = scheme == Scheme::kSharedKey;
  const std::vector<std::string> resources = CanonicalResources(request, is_full);
  const std::vector<std::string> headers = CanonicalHeaders(request);
  std::vector<std::string> texts;
  for (const std::string& lines : is_full ? SignedLines(request) : LiteLines(request)) {
    for (const std::string& canonical : headers) {
      for (const std::string& resource : resources) {
        texts.push_back(absl::StrCat(request.method, "\n", lines, canonical, resource));
      }
    }
  }
  return texts;
}

namespace {

// nullopt: it is no date.
std::optional<absl::Time> ParseHttpDate(const std::string& text) {
  constexpr size_t kDateBytes = 29;   // of RFC 9110's only form that may be sent
  constexpr size_t kRecentDates = 4;  // of what many clients sign at the same time
  if (text.size() != kDateBytes) return std::nullopt;
  thread_local base::LruMap<std::string, std::optional<absl::Time>> recent(kRecentDates);
  const auto [parsed, is_new] = recent.FindOrAdd(text);
  if (is_new) {
    absl::Time date;
    std::string error;
    // The SDK for Java of 2019 writes UTC once it has read a date that does.
    if (absl::ParseTime("%a, %d %b %Y %H:%M:%S GMT", text, &date, &error) ||
        absl::ParseTime("%a, %d %b %Y %H:%M:%S UTC", text, &date, &error)) {
      *parsed = date;
    }
  }
  return *parsed;
}

}  // namespace

absl::Status CheckDate(const SignedRequest& request, absl::Time now) {
  std::optional<std::string> text = request.Header("x-ms-date");
  if (!text.has_value()) text = request.Header("date");
  if (!text.has_value()) return absl::UnauthenticatedError("the request has no date");
  const std::optional<absl::Time> date = ParseHttpDate(*text);
  if (!date.has_value()) {
    return absl::UnauthenticatedError(
        absl::StrCat("the request's date ", base::Quoted(*text), " is no date of RFC 1123"));
  }
  if (absl::AbsDuration(now - *date) <= kReplayWindow) return absl::OkStatus();
  return absl::UnauthenticatedError(
      absl::StrCat("the request's date ", base::Quoted(*text), " is more than ",
                   absl::FormatDuration(kReplayWindow), " from now, ", FormatHttpDate(now)));
}

namespace {

bool IsSignedBy(const Account& account, const std::vector<std::string>& texts,
                const std::string& mac) {
  bool found = false;
  for (const std::string& key : account.keys) {
    for (const std::string& text : texts) {
      found |= EqualInConstantTime(HmacSha256(key, text), mac);
    }
  }
  return found;
}

}  // namespace

Verdict CheckSharedKey(const SignedRequest& request, const Credential& credential,
                       const Account& account, absl::Time now) {
  const absl::StatusOr<SharedKeySignature> signature =
      ParseSharedKeySignature(credential.parameters);
  if (!signature.ok()) {
    return Refuse(errors::ErrorCode::kInvalidAuthenticationInfo, signature.status().message());
  }
  absl::Status status;
  if (signature->account != account.name) {
    status = absl::UnauthenticatedError("the signature is of another account than the request");
  }
  if (status.ok()) status = CheckUnambiguous(request);
  if (status.ok()) status = CheckDate(request, now);
  if (!status.ok()) return Refuse(errors::ErrorCode::kAuthenticationFailed, status.message());

  Verdict verdict;
  verdict.scheme = SharedKeySchemeOf(credential, request);
  const std::vector<std::string> texts = StringsToSign(request, verdict.scheme);
  if (IsSignedBy(account, texts, signature->mac)) return verdict;
  return Refuse(errors::ErrorCode::kAuthenticationFailed,
                absl::StrCat("the signature is not that of this request; the server signed: '",
                             texts.front(), "'"));
}

}  // namespace muster::queue_gateway::auth
