// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/protocol/parameters.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"

namespace muster::queue_gateway::protocol {
namespace {

// Digits, with or without a minus before them. A number beyond 64 bits is the nearest of them.
std::optional<int64_t> ParseInteger(absl::string_view text) {
  absl::string_view digits = text;
  const bool is_negative = absl::ConsumePrefix(&digits, "-");
  if (digits.empty() || !std::all_of(digits.begin(), digits.end(), absl::ascii_isdigit)) {
    return std::nullopt;
  }
  int64_t value = 0;
  if (absl::SimpleAtoi(text, &value)) return value;
  return is_negative ? INT64_MIN : INT64_MAX;
}

}  // namespace

void Parameters::Fail(Error error) {
  if (!error_.has_value()) error_ = std::move(error);
}

std::optional<int64_t> Parameters::Integer(absl::string_view name, int64_t min, int64_t max) {
  const std::optional<absl::string_view> text = target_.Parameter(name);
  if (!text.has_value()) return std::nullopt;
  const std::optional<int64_t> value = ParseInteger(*text);
  if (!value.has_value()) {
    Fail(InvalidParameter(name, *text, "It is no whole number."));
    return std::nullopt;
  }
  if (*value < min || *value > max) {
    Fail(OutOfRange(name, *text, min, max));
    return std::nullopt;
  }
  return value;
}

int64_t Parameters::RequiredInteger(absl::string_view name, int64_t min, int64_t max) {
  Required(name);
  return Integer(name, min, max).value_or(min);
}

std::string Parameters::Required(absl::string_view name) {
  const std::optional<absl::string_view> text = target_.Parameter(name);
  if (text.has_value() && !text->empty()) return std::string(*text);
  Fail({ErrorCode::kMissingRequiredQueryParameter, {{"QueryParameterName", std::string(name)}}});
  return "";
}

std::string Parameters::Text(absl::string_view name) const {
  return std::string(target_.Parameter(name).value_or(""));
}

}  // namespace muster::queue_gateway::protocol
