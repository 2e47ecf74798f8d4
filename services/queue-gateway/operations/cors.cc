// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/operations/cors.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "services/queue-gateway/protocol/reply.h"

namespace muster::queue_gateway::operations {
namespace {

using protocol::ErrorCode;

bool AllowsAll(const CorsRule& rule) {
  return std::find(rule.origins.begin(), rule.origins.end(), "*") != rule.origins.end();
}

bool Allows(const CorsRule& rule, absl::string_view origin, absl::string_view method) {
  const bool is_origin = AllowsAll(rule) || std::find(rule.origins.begin(), rule.origins.end(),
                                                      origin) != rule.origins.end();
  return is_origin &&
         std::find(rule.methods.begin(), rule.methods.end(), method) != rule.methods.end();
}

// `rules`: names of headers, and what names begin with, before a "*".
bool IsOneOf(const std::vector<std::string>& rules, absl::string_view header) {
  return std::any_of(rules.begin(), rules.end(), [header](absl::string_view rule) {
    if (absl::ConsumeSuffix(&rule, "*")) return absl::StartsWithIgnoreCase(header, rule);
    return absl::EqualsIgnoreCase(header, rule);
  });
}

bool AllowsHeaders(const CorsRule& rule, absl::string_view headers) {
  for (const absl::string_view header : absl::StrSplit(headers, ',', absl::SkipWhitespace())) {
    if (!IsOneOf(rule.allowed_headers, absl::StripAsciiWhitespace(header))) return false;
  }
  return true;
}

// By their whole names: to a browser, "x-ms-*" is the name of one header.
std::string ExposedHeaders(const CorsRule& rule, const http::Headers& headers) {
  std::vector<absl::string_view> exposed;
  for (const auto& [name, value] : headers) {
    if (IsOneOf(rule.exposed_headers, name)) exposed.push_back(name);
  }
  return absl::StrJoin(exposed, ",");
}

// A page that any origin may load gets no credentials along, as browsers have it.
http::Headers OriginHeaders(const CorsRule& rule, absl::string_view origin) {
  if (AllowsAll(rule)) return {{"Access-Control-Allow-Origin", "*"}};
  return {{"Access-Control-Allow-Origin", std::string(origin)},
          {"Access-Control-Allow-Credentials", "true"},
          {"Vary", "Origin"}};
}

}  // namespace

Outcome Preflight(const http::Request& request, const ServiceProperties& properties) {
  const auto origin = http::HeaderOf(request.headers, "origin");
  const auto method = http::HeaderOf(request.headers, "access-control-request-method");
  if (!origin.has_value() || !method.has_value()) return ErrorCode::kMissingRequiredHeader;
  const absl::string_view headers =
      http::HeaderOf(request.headers, "access-control-request-headers").value_or("");
  for (const CorsRule& rule : properties.cors) {
    if (!Allows(rule, *origin, *method) || !AllowsHeaders(rule, headers)) continue;
    http::Headers reply = OriginHeaders(rule, *origin);
    reply.emplace_back("Access-Control-Allow-Methods", std::string(*method));
    if (!headers.empty()) reply.emplace_back("Access-Control-Allow-Headers", std::string(headers));
    reply.emplace_back("Access-Control-Max-Age", absl::StrCat(rule.max_age_seconds));
    return protocol::Empty(200, std::move(reply));
  }
  return ErrorCode::kCorsPreflightFailure;
}

void AddCorsHeaders(const http::Request& request, const ServiceProperties& properties,
                    http::Reply* reply) {
  const auto origin = http::HeaderOf(request.headers, "origin");
  if (!origin.has_value()) return;
  for (const CorsRule& rule : properties.cors) {
    if (!Allows(rule, *origin, request.method)) continue;
    std::string exposed = ExposedHeaders(rule, reply->headers);
    for (auto& header : OriginHeaders(rule, *origin)) reply->headers.push_back(std::move(header));
    if (!exposed.empty()) {
      reply->headers.emplace_back("Access-Control-Expose-Headers", std::move(exposed));
    }
    return;
  }
}

}  // namespace muster::queue_gateway::operations
