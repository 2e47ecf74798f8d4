// SPDX-License-Identifier: Apache-2.0
#include "muster/telemetry/otlp/variable_values.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "muster/base/names.h"
#include "muster/base/quantity.h"
#include "muster/base/text.h"

namespace muster::telemetry {
namespace {

// Decodes %XX; a percent sign that begins no such code is wrong.
absl::StatusOr<std::string> PercentDecoded(absl::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded.push_back(text[i]);
      continue;
    }
    if (i + 2 >= text.size() || !absl::ascii_isxdigit(static_cast<unsigned char>(text[i + 1])) ||
        !absl::ascii_isxdigit(static_cast<unsigned char>(text[i + 2]))) {
      return absl::InvalidArgumentError("a percent sign is written %25");
    }
    decoded += base::BytesFromHex(text.substr(i + 1, 2));
    i += 2;
  }
  return decoded;
}

}  // namespace

absl::Status Wrong(absl::string_view name, absl::string_view value, absl::string_view instead) {
  return absl::InvalidArgumentError(
      absl::StrCat(name, " is '", base::Printable(value, 200), "': ", instead));
}

absl::StatusOr<NamesAndValues> PairsOf(absl::string_view variable, absl::string_view text) {
  NamesAndValues pairs;
  for (const absl::string_view part : absl::StrSplit(text, ',', absl::SkipWhitespace())) {
    const std::pair<absl::string_view, absl::string_view> sides =
        absl::StrSplit(part, absl::MaxSplits('=', 1));
    const absl::string_view name = absl::StripAsciiWhitespace(sides.first);
    const auto value = PercentDecoded(absl::StripAsciiWhitespace(sides.second));
    if (name.empty() || !absl::StrContains(part, '=') || !value.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(
          variable, ": entry ", pairs.size() + 1,
          " is not NAME=VALUE; entries have commas between them, and in a value a comma is written "
          "%2C and a percent sign %25"));
    }
    pairs.emplace_back(std::string(name), *value);
  }
  return pairs;
}

absl::StatusOr<std::string> EndpointOf(absl::string_view variable, absl::string_view text) {
  constexpr absl::string_view kInstead =
      "write http://HOST:PORT, or https://HOST:PORT for TLS; the port of a collector for gRPC is "
      "mostly 4317";
  if (absl::StrContains(text, '@')) {
    return absl::InvalidArgumentError(absl::StrCat(
        variable, " has an '@': credentials belong into OTEL_EXPORTER_OTLP_HEADERS; ", kInstead));
  }
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits("://", 1));
  const std::string scheme = absl::AsciiStrToLower(parts.first);
  if (!absl::StrContains(text, "://") || (scheme != "http" && scheme != "https")) {
    return Wrong(variable, text, kInstead);
  }
  const absl::string_view place = absl::StripSuffix(parts.second, "/");
  if (absl::StrContains(place, '/')) {
    return Wrong(variable, text,
                 absl::StrCat("muster sends by gRPC, which has no path; ", kInstead));
  }
  const size_t colon = place.rfind(':');
  const size_t bracket = place.rfind(']');
  const bool has_port = colon != place.npos && (bracket == place.npos || colon > bracket);
  const absl::string_view host = place.substr(0, has_port ? colon : place.npos);
  int port = scheme == "https" ? 443 : 80;
  if (has_port && (!absl::SimpleAtoi(place.substr(colon + 1), &port) || port < 1 || port > 65535)) {
    return Wrong(variable, text, kInstead);
  }
  const bool is_v6 = absl::StartsWith(host, "[") && absl::EndsWith(host, "]") && host.size() > 2;
  const bool is_name =
      !host.empty() && std::all_of(host.begin(), host.end(), base::IsNameCharacter);
  if (!is_v6 && !is_name) return Wrong(variable, text, kInstead);
  return absl::StrCat(scheme, "://", host, ":", port);
}

absl::StatusOr<absl::Duration> TimeOf(absl::string_view variable, absl::string_view text) {
  constexpr absl::string_view kInstead =
      "write a number of milliseconds above 0, such as 10000, or a time with its unit, such as "
      "10s; "
      "an hour at most";
  int64_t milliseconds = 0;
  absl::StatusOr<absl::Duration> time = absl::SimpleAtoi(text, &milliseconds)
                                            ? absl::Milliseconds(milliseconds)
                                            : base::ParseDuration(text);
  if (!time.ok() || *time <= absl::ZeroDuration() || *time > kMaxCallTimeout) {
    return Wrong(variable, text, kInstead);
  }
  return time;
}

absl::StatusOr<size_t> CountOf(absl::string_view variable, absl::string_view text, size_t most) {
  size_t count = 0;
  if (!absl::SimpleAtoi(text, &count) || count < 1 || count > most) {
    return Wrong(variable, text, absl::StrCat("write a whole number from 1 to ", most));
  }
  return count;
}

absl::StatusOr<bool> BoolOf(absl::string_view variable, absl::string_view text) {
  if (absl::EqualsIgnoreCase(text, "true")) return true;
  if (text.empty() || absl::EqualsIgnoreCase(text, "false")) return false;
  return Wrong(variable, text, "write true or false");
}

}  // namespace muster::telemetry
