// CommandWords: what may stand in a command line, for shells that complete it.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace muster::cli {

struct OptionWords {
  std::vector<std::string> names;  // "-o", "--output"
  std::string about;
  bool takes_value = false;
  std::vector<std::string> choices;  // that the value is one of; empty: it may be anything
};

struct CommandWords {
  std::string path;  // "batch list"; empty: the program itself
  std::string name;  // the last word of it
  std::string about;
  std::vector<CommandWords> commands;
  std::vector<OptionWords> options;
  bool takes_arguments = false;
};

// All commands and options that are for people.
CommandWords WordsOf(const CLI::App& app);

// `tree` and all below it, each before those that it has.
std::vector<const CommandWords*> AllCommands(const CommandWords& tree);

}  // namespace muster::cli
