// SPDX-License-Identifier: Apache-2.0
#include "services/host/numbers.h"

#include <algorithm>
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

}  // namespace

void CheckNumbers(CLI::App* app) {
  for (CLI::Option* const option : app->get_options()) {
    const std::string type = option->get_type_name();
    if (absl::StartsWith(type, "UINT")) option->check(CheckWhole<uint64_t>);
    if (absl::StartsWith(type, "INT")) option->check(CheckWhole<int64_t>);
  }
  for (CLI::App* const command : app->get_subcommands([](CLI::App*) { return true; })) {
    CheckNumbers(command);
  }
}

}  // namespace muster::host
