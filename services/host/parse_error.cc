// SPDX-License-Identifier: Apache-2.0
#include "services/host/parse_error.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "CLI/CLI.hpp"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace muster::host {

void TakeRefusedVariables(CLI::App* app) {
  const auto is_unset = [](const CLI::Option* option) {
    return option->count() == 0 && !option->get_envname().empty();
  };
  for (CLI::Option* option : app->get_options(is_unset)) {
    const std::string& name = option->get_envname();
    const char* const text = std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe): alone
    if (text == nullptr || *text == '\0') continue;
    option->add_result(text);
    option->run_callback();
  }
}

namespace {

// npos: `text` has no such word. --tls is none of --tls-key.
size_t PlaceOfWord(absl::string_view text, absl::string_view word) {
  size_t place = text.find(word);
  const auto goes_on = [&](size_t end) {
    return end < text.size() && (absl::ascii_isalnum(text[end]) || text[end] == '-');
  };
  while (place != absl::string_view::npos && goes_on(place + word.size())) {
    place = text.find(word, place + 1);
  }
  return place;
}

bool IsSetByVariable(const CLI::Option& option, absl::Span<const char* const> words) {
  const std::string& variable = option.get_envname();
  if (variable.empty() || option.get_lnames().empty()) return false;
  const char* const text = std::getenv(variable.c_str());  // NOLINT(concurrency-mt-unsafe): alone
  if (text == nullptr || *text == '\0') return false;
  return std::none_of(words.begin(), words.end(), [&](absl::string_view word) {
    const std::string name = absl::StrCat("--", option.get_lnames().front());
    return word == name || absl::StartsWith(word, name + "=");
  });
}

}  // namespace

std::string WithVariable(const CLI::App& command, const CLI::ParseError& mistake,
                         absl::Span<const char* const> words) {
  std::string text = mistake.what();
  for (const CLI::Option* const option : command.get_options()) {
    const std::string name = option->get_name();
    const size_t place = PlaceOfWord(text, name);
    if (place == std::string::npos || !IsSetByVariable(*option, words)) continue;
    return text.replace(place, name.size(), option->get_envname());
  }
  return text;
}

int AnswerParseError(const CLI::App& app, const CLI::ParseError& error,
                     absl::Span<const char* const> words) {
  if (error.get_exit_code() == 0) return app.exit(error, std::cout, std::cerr);
  const CLI::ParseError mistake(WithVariable(app, error, words), error.get_exit_code());
  return app.exit(mistake, std::cout, std::cerr);
}

}  // namespace muster::host
