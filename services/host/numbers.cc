// SPDX-License-Identifier: Apache-2.0
#include "services/host/numbers.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace muster::host {
namespace {

bool IsDigits(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
}

template <typename Number>
std::string CheckWhole(const std::string& text) {
  absl::string_view digits = text;
  absl::ConsumePrefix(&digits, "-");
  Number number;
  if (!IsDigits(digits)) return absl::StrCat("'", text, "' is not a whole number");
  if (digits.size() > 1 && digits.front() == '0') return text + " begins with a zero";
  return absl::SimpleAtoi(text, &number) ? "" : text + " is out of range";
}

std::string CheckFinite(const std::string& text) {
  double number = 0;
  const bool is_word =
      text.find_first_of("0123456789") > text.find_first_of("iInN");  // nan(1) is one
  if (is_word || !absl::SimpleAtod(text, &number)) {
    return absl::StrCat("'", text, "' is not a number");
  }
  return std::isfinite(number) ? "" : text + " is out of range";
}

// As Option::check, but before the bounds that the option has: they would compare what is none.
void CheckFirst(CLI::Option* option, std::string (*check)(const std::string&)) {
  option->transform(CLI::Validator([check](std::string& text) { return check(text); }, ""));
}

}  // namespace

void CheckNumbers(CLI::App* app) {
  for (CLI::Option* const option : app->get_options()) {
    const std::string type = option->get_type_name();
    if (absl::StartsWith(type, "UINT")) option->check(CheckWhole<uint64_t>);
    if (absl::StartsWith(type, "INT")) option->check(CheckWhole<int64_t>);
    if (absl::StartsWith(type, "FLOAT")) CheckFirst(option, CheckFinite);
  }
  for (CLI::App* const command : app->get_subcommands([](CLI::App*) { return true; })) {
    CheckNumbers(command);
  }
}

}  // namespace muster::host
