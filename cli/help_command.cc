// muster help [COMMAND…]
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "cli/misuse.h"
#include "cli/output/environment.h"

namespace muster::cli {
namespace {

// nullptr: there is none.
const CLI::App* CommandBelow(const CLI::App& app, const std::string& name) {
  const auto commands =
      app.get_subcommands([&name](const CLI::App* command) { return command->get_name() == name; });
  return name.empty() || commands.empty() ? nullptr : commands.front();
}

void PrintHelp(const CLI::App& app, const std::vector<std::string>& words,
               const Environment& environment) {
  const CLI::App* command = &app;
  std::string name = app.get_name();
  for (const std::string& word : words) {
    const CLI::App* const below = CommandBelow(*command, word);
    if (below == nullptr) {
      *environment.err << ExplainUnknownArgument(*command, word);
      environment.exit_code = kUsage;
      return;
    }
    command = below;
    absl::StrAppend(&name, " ", word);
  }
  // App::help would tell of the command that was given, which is this one.
  *environment.out << command->get_formatter()->make_help(command, name,
                                                          CLI::AppFormatMode::Normal);
}

}  // namespace

void AddHelp(CLI::App* app, const Environment& environment) {
  CLI::App* const help = app->add_subcommand("help", "Say what a command does, as --help does");
  const auto words = std::make_shared<std::vector<std::string>>();
  help->add_option("COMMAND", *words, "Such as batch submit; without it, all of muster");
  help->callback([app, words, &environment] { PrintHelp(*app, *words, environment); });
}

}  // namespace muster::cli
