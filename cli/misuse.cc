#include "cli/misuse.h"

#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cli/output/table.h"
#include "muster/base/nearest_name.h"

namespace muster::cli {
namespace {

// The outermost of the commands that were given a word that they do not take; nullptr: none was.
const CLI::App* FindUnparsed(const CLI::App& app) {
  if (app.remaining_size() > 0) return &app;
  for (const CLI::App* const command : app.get_subcommands()) {
    if (const CLI::App* const found = FindUnparsed(*command); found != nullptr) return found;
  }
  return nullptr;
}

std::string FirstUnknownWord(const CLI::App& app) {
  for (const std::string& word : app.remaining()) {
    if (word != "--") return word;  // it only ends the options
  }
  return "";
}

// "batch get"; empty for the program itself.
std::string NameBelow(const CLI::App& app) {
  const CLI::App* const parent = app.get_parent();
  if (parent == nullptr) return "";
  const std::string above = NameBelow(*parent);
  return absl::StrCat(above, above.empty() ? "" : " ", app.get_name());
}

std::string ItHas(const CLI::App& app) {
  const std::string name = NameBelow(app);
  return name.empty() ? "there is" : absl::StrCat(name, " has");
}

std::vector<std::string> CommandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* const command : app.get_subcommands([](const CLI::App*) { return true; })) {
    const bool is_option_group = command->get_name().empty();
    const bool is_for_people = !command->get_group().empty();
    if (!is_option_group && is_for_people) names.push_back(command->get_name());
  }
  return names;
}

std::vector<std::string> OptionNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* const option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back(absl::StrCat("--", name));
  }
  return names;
}

std::string ExplainCommand(const CLI::App& app, const std::string& word) {
  const std::vector<std::string> names = CommandNames(app);
  const std::string meant = base::DidYouMean(word, names);
  return absl::StrCat(
      ItHas(app), " no command ", base::Quoted(word),
      meant.empty() ? absl::StrCat("; the commands are ", base::ListNames(names)) : meant);
}

std::string ExplainOption(const CLI::App& app, const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  const std::string meant = base::DidYouMean(name, OptionNames(app));
  const bool has_commands = !CommandNames(app).empty();
  return absl::StrCat(
      ItHas(app), " no option ", base::Quoted(name),
      meant.empty() && has_commands ? "; the options of a command come after its name" : meant);
}

std::string Explain(const CLI::App& app, const std::string& word) {
  if (absl::StartsWith(word, "-")) return ExplainOption(app, word);
  if (!CommandNames(app).empty()) return ExplainCommand(app, word);
  return absl::StrCat(NameBelow(app), ": ", base::Quoted(word), " is one argument too many");
}

// The command that was being read when reading ended.
const CLI::App& Innermost(const CLI::App& app) {
  for (const CLI::App* const command : app.get_subcommands()) {
    const bool is_option_group = command->get_name().empty();
    if (!is_option_group) return Innermost(*command);
  }
  return app;
}

// CLI11 begins some of its messages as sentences, and others with a name.
std::string Uncapitalized(std::string text) {
  if (text.size() > 1 && absl::ascii_islower(text[1])) text[0] = absl::ascii_tolower(text[0]);
  return text;
}

std::string WhatIsWrong(const CLI::App& command, const CLI::ParseError& mistake) {
  const std::vector<std::string> names = CommandNames(command);
  const bool is_missing =
      mistake.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiredError);
  if (is_missing && !names.empty()) {
    return absl::StrCat("a command is required; the commands are ", base::ListNames(names));
  }
  return Uncapitalized(Printable(mistake.what()));
}

// As every complaint is: what is wrong, and where to read on.
std::string Complaint(const CLI::App& command, const std::string& what) {
  const std::string name = NameBelow(command);
  return absl::StrCat("muster: ", what, "\nmuster ", name, name.empty() ? "" : " ",
                      "--help tells more\n");
}

}  // namespace

std::string ExplainUnknownWord(const CLI::App& app) {
  const CLI::App* const unparsed = FindUnparsed(app);
  if (unparsed == nullptr) return "";
  return ExplainUnknownArgument(*unparsed, FirstUnknownWord(*unparsed));
}

std::string ExplainUnknownArgument(const CLI::App& app, const std::string& word) {
  return Complaint(app, Explain(app, word));
}

std::string ExplainParseError(const CLI::App& app, const CLI::ParseError& mistake) {
  const CLI::App& command = Innermost(app);
  const std::string name = NameBelow(command);
  return Complaint(command,
                   absl::StrCat(name, name.empty() ? "" : ": ", WhatIsWrong(command, mistake)));
}

}  // namespace muster::cli
