// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/protocol/target.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "muster/base/text.h"

namespace muster::queue_gateway::protocol {
namespace {

// "http://host/path" → "/path", and "host".
absl::string_view WithoutOrigin(absl::string_view target, std::string* host) {
  const size_t scheme = target.find("://");
  if (absl::StartsWith(target, "/") || scheme == absl::string_view::npos) return target;
  target.remove_prefix(scheme + 3);
  const size_t path = target.find_first_of("/?");
  *host = std::string(target.substr(0, path));
  return path == absl::string_view::npos ? absl::string_view("/") : target.substr(path);
}

bool ParsePath(absl::string_view path, Target* target) {
  target->raw_path = std::string(path);
  for (const absl::string_view part : absl::StrSplit(path.substr(1), '/')) {
    std::optional<std::string> decoded = PercentDecode(part);
    if (!decoded.has_value()) return false;
    target->parts.push_back(*std::move(decoded));
  }
  while (!target->parts.empty() && target->parts.back().empty()) target->parts.pop_back();
  return true;
}

bool ParseQuery(absl::string_view query, Target* target) {
  for (const absl::string_view parameter : absl::StrSplit(query, '&', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> pair =
        absl::StrSplit(parameter, absl::MaxSplits('=', 1));
    std::optional<std::string> name = PercentDecode(absl::StrReplaceAll(pair.first, {{"+", " "}}));
    std::optional<std::string> value =
        PercentDecode(absl::StrReplaceAll(pair.second, {{"+", " "}}));
    if (!name.has_value() || !value.has_value()) return false;
    target->query.emplace_back(*std::move(name), *std::move(value));
  }
  return true;
}

}  // namespace

std::optional<std::string> PercentDecode(absl::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded.push_back(text[i]);
      continue;
    }
    const absl::string_view digits = text.substr(i + 1, 2);
    if (digits.size() != 2 || !absl::ascii_isxdigit(digits[0]) ||
        !absl::ascii_isxdigit(digits[1])) {
      return std::nullopt;
    }
    decoded += base::BytesFromHex(digits);
    i += 2;
  }
  return decoded;
}

std::optional<absl::string_view> Target::Parameter(absl::string_view name) const {
  for (const auto& [key, value] : query) {
    if (absl::EqualsIgnoreCase(key, name)) return value;
  }
  return std::nullopt;
}

std::optional<Target> ParseTarget(absl::string_view target) {
  Target parsed;
  target = WithoutOrigin(target, &parsed.host);
  if (!absl::StartsWith(target, "/") && !absl::StartsWith(target, "?")) return std::nullopt;
  const size_t mark = target.find('?');
  const absl::string_view path = target.substr(0, mark);
  const absl::string_view query =
      mark == absl::string_view::npos ? absl::string_view() : target.substr(mark + 1);
  if (!ParsePath(path.empty() ? "/" : path, &parsed) || !ParseQuery(query, &parsed)) {
    return std::nullopt;
  }
  return parsed;
}

}  // namespace muster::queue_gateway::protocol
