#include "cli/completion_tree.h"

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace muster::cli {
namespace {

// CLI11 keeps the choices of a validator in its description, as "{json,table}".
std::vector<std::string> ChoicesOf(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const size_t begin = type.find('{');
  const size_t end = type.find('}');
  if (begin == std::string::npos || end == std::string::npos || end < begin) return {};
  return absl::StrSplit(type.substr(begin + 1, end - begin - 1), ',');
}

std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

CompletionOption OptionWordsOf(const CLI::Option& option) {
  CompletionOption words;
  for (const std::string& name : option.get_snames())
    words.names.push_back(absl::StrCat("-", name));
  for (const std::string& name : option.get_lnames()) {
    words.names.push_back(absl::StrCat("--", name));
  }
  words.about = FirstLine(option.get_description());
  words.takes_value = option.get_items_expected_max() > 0;
  words.choices = ChoicesOf(option);
  return words;
}

CompletionCommand WordsBelow(const CLI::App& app, const std::string& path) {
  CompletionCommand words;
  words.path = path;
  words.name = path.empty() ? "" : app.get_name();
  words.about = FirstLine(app.get_description());
  for (const CLI::Option* const option : app.get_options()) {
    const bool is_for_people = !option->get_group().empty();
    if (option->get_positional()) words.takes_arguments = true;
    if (option->nonpositional() && is_for_people) words.options.push_back(OptionWordsOf(*option));
  }
  for (const CLI::App* const command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_name().empty() || command->get_group().empty()) continue;
    words.commands.push_back(
        WordsBelow(*command, absl::StrCat(path, path.empty() ? "" : " ", command->get_name())));
  }
  return words;
}

}  // namespace

CompletionCommand WordsOf(const CLI::App& app) { return WordsBelow(app, ""); }

std::vector<const CompletionCommand*> AllCommands(const CompletionCommand& tree) {
  std::vector<const CompletionCommand*> all = {&tree};
  for (const CompletionCommand& command : tree.commands) {
    for (const CompletionCommand* const below : AllCommands(command)) all.push_back(below);
  }
  return all;
}

}  // namespace muster::cli
