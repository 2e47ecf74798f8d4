// CompletionCommand: what may stand in a command line, for shells that complete it.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace muster::cli {

struct CompletionOption {
  std::vector<std::string> names;  // "-o", "--output"
  std::string about;
  bool takes_value = false;
  std::vector<std::string> choices;  // that the value is one of; empty: it may be anything
};

struct CompletionCommand {
  std::string path;  // "batch list"; empty: the program itself
  std::string name;  // the last word of it
  std::string about;
  std::vector<CompletionCommand> commands;
  std::vector<CompletionOption> options;
  bool takes_arguments = false;
};

// All commands and options that are for people.
CompletionCommand WordsOf(const CLI::App& app);

// `tree` and all below it, each before those that it has.
std::vector<const CompletionCommand*> AllCommands(const CompletionCommand& tree);

// What a shell must be told to complete `muster` command lines.
//
// Each script finds the command in the words before the cursor, and offers its commands, options,
// or the choices of the option that the cursor follows; elsewhere the names of files.

// To be sourced.
std::string BashCompletion(const CompletionCommand& tree);
// To be sourced, or put as _muster into a folder of $fpath.
std::string ZshCompletion(const CompletionCommand& tree);
// To be sourced.
std::string FishCompletion(const CompletionCommand& tree);

}  // namespace muster::cli
