// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/auth/bearer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "muster/base/status.h"
#include "muster/base/text.h"
#include "services/queue-gateway/auth/limits.h"
#include "services/queue-gateway/auth/mac.h"

namespace muster::queue_gateway::auth {

namespace {

using nlohmann::json;

// A token, read and not judged (RFC 7515 §7.1): header.claims.signature, each as base64url.
struct Jwt {
  json header;
  json claims;
  std::string signed_text;  // header.claims, as sent
  std::string signature;
};

// An object; discarded: it is none.
json ParseObject(absl::string_view base64) {
  const std::optional<std::string> text = DecodeBase64Url(base64);
  json value = json::value_t::discarded;
  if (text.has_value()) value = json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!value.is_object()) value = json::value_t::discarded;
  return value;
}

absl::StatusOr<Jwt> ParseJwt(absl::string_view token) {
  const std::vector<absl::string_view> parts = absl::StrSplit(token, '.');
  if (parts.size() != 3) return absl::InvalidArgumentError("the token is no signed JWT");
  Jwt jwt;
  jwt.header = ParseObject(parts[0]);
  jwt.claims = ParseObject(parts[1]);
  const std::optional<std::string> signature = DecodeBase64Url(parts[2]);
  if (jwt.header.is_discarded() || jwt.claims.is_discarded() || !signature.has_value()) {
    return absl::InvalidArgumentError("a part of the token is no base64url, or no JSON object");
  }
  jwt.signed_text = absl::StrCat(parts[0], ".", parts[1]);
  jwt.signature = *signature;
  return jwt;
}

absl::Status NotValid(absl::string_view why) { return absl::UnauthenticatedError(why); }

// "": the member is missing, or no text.
std::string TextMember(const json& object, const char* name) {
  const auto member = object.find(name);
  return member != object.end() && member->is_string() ? member->get<std::string>() : "";
}

// "": the member is missing, or is none of an identity, which is a GUID.
std::string IdMember(const json& object, const char* name) {
  std::string id = TextMember(object, name);
  const bool is_id =
      std::all_of(id.begin(), id.end(), [](char c) { return absl::ascii_isalnum(c) || c == '-'; });
  return is_id ? id : "";
}

absl::StatusOr<JwsAlgorithm> AlgorithmOf(const json& header) {
  // Extensions that must be understood, and are not (RFC 7515 §4.1.11).
  if (header.contains("crit")) return NotValid("the token asks for extensions");
  const std::string name = TextMember(header, "alg");
  if (name == "RS256") return JwsAlgorithm::kRs256;
  if (name == "ES256") return JwsAlgorithm::kEs256;
  return NotValid(
      absl::StrCat("the token's algorithm ", base::Quoted(name), " is neither RS256 nor ES256"));
}

// Seconds since 1970, up to the year 9999. nullopt: the claim is missing or is no such number.
std::optional<absl::Time> TimeClaim(const json& claims, const char* name) {
  constexpr double kMaxSeconds = 253'402'300'799;
  const auto claim = claims.find(name);
  if (claim == claims.end() || !claim->is_number()) return std::nullopt;
  const double seconds = claim->get<double>();
  if (!(seconds >= 0 && seconds <= kMaxSeconds)) return std::nullopt;
  return absl::UnixEpoch() + absl::Seconds(seconds);
}

absl::Status CheckTimes(const json& claims, absl::Time now) {
  const std::optional<absl::Time> expiry = TimeClaim(claims, "exp");
  if (!expiry.has_value()) return NotValid("the token has no exp");
  if (now >= *expiry) return NotValid("the token has expired");
  if (!claims.contains("nbf")) return absl::OkStatus();
  const std::optional<absl::Time> not_before = TimeClaim(claims, "nbf");
  if (!not_before.has_value()) return NotValid("the token's nbf is no time");
  return now >= *not_before ? absl::OkStatus() : NotValid("the token is not valid yet");
}

absl::Status CheckIssuer(const json& claims, const std::vector<std::string>& issuers) {
  const std::string issuer = TextMember(claims, "iss");
  const bool is_known = std::any_of(issuers.begin(), issuers.end(), [&](const std::string& known) {
    return absl::EndsWith(known, "/") ? absl::StartsWith(issuer, known) : issuer == known;
  });
  if (is_known && !issuer.empty()) return absl::OkStatus();
  return NotValid(absl::StrCat("the token's issuer ", base::Quoted(issuer), " is not known"));
}

bool IsAudience(absl::string_view claim, absl::string_view account,
                const std::vector<std::string>& audiences) {
  claim = absl::StripSuffix(claim, "/");
  return std::any_of(audiences.begin(), audiences.end(), [&](const std::string& audience) {
    return claim == absl::StripSuffix(absl::StrReplaceAll(audience, {{"{account}", account}}), "/");
  });
}

// A token may be for several audiences; one that is ours suffices (RFC 7519 §4.1.3).
absl::Status CheckAudience(const json& claims, absl::string_view account,
                           const std::vector<std::string>& audiences) {
  const auto is_ours = [&](const json& entry) {
    return entry.is_string() && IsAudience(entry.get<std::string>(), account, audiences);
  };
  const auto claim = claims.find("aud");
  if (claim == claims.end()) return NotValid("the token has no audience");
  // Not copied: a copy takes a frame of the stack for each level of what a caller has nested.
  const bool is_for_us =
      claim->is_array() ? std::any_of(claim->begin(), claim->end(), is_ours) : is_ours(*claim);
  return is_for_us ? absl::OkStatus() : NotValid("the token is for another audience");
}

}  // namespace

absl::StatusOr<std::unique_ptr<BearerVerifier>> BearerVerifier::Open(BearerOptions options,
                                                                     const base::Clock* clock) {
  const std::string path = options.jwks_file;
  std::unique_ptr<BearerVerifier> verifier(new BearerVerifier(std::move(options), clock));
  if (path.empty()) return verifier;
  auto parse = [path](absl::string_view text) -> absl::StatusOr<KeySet> {
    absl::StatusOr<KeySet> set = KeySet::Parse(text);
    if (!set.ok()) return base::Annotate(set.status(), path);
    return set;
  };
  MUSTER_ASSIGN_OR_RETURN(verifier->key_set_,
                          WatchedFile<KeySet>::Open(path, std::move(parse), clock));
  return verifier;
}

absl::StatusOr<Identity> BearerVerifier::Check(absl::string_view token,
                                               absl::string_view account) const {
  MUSTER_ASSIGN_OR_RETURN(const Jwt jwt, ParseJwt(token));
  MUSTER_ASSIGN_OR_RETURN(const JwsAlgorithm algorithm, AlgorithmOf(jwt.header));
  if (key_set_ != nullptr &&
      !key_set_->Current()->Verifies(algorithm, TextMember(jwt.header, "kid"), jwt.signed_text,
                                     jwt.signature)) {
    return NotValid("the token is not signed by a key of the key set");
  }
  MUSTER_RETURN_IF_ERROR(CheckTimes(jwt.claims, clock_->Now()));
  MUSTER_RETURN_IF_ERROR(CheckIssuer(jwt.claims, options_.issuers));
  MUSTER_RETURN_IF_ERROR(CheckAudience(jwt.claims, account, options_.audiences));
  return Identity{IdMember(jwt.claims, "oid"), IdMember(jwt.claims, "tid")};
}

// Without quotes and commas: the clients of the service split it at blanks.
std::string BearerVerifier::Challenge() const {
  return absl::StrCat("Bearer authorization_uri=", options_.authorization_uri,
                      " resource_id=", options_.resource_id);
}

}  // namespace muster::queue_gateway::auth
