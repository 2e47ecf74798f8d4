// SPDX-License-Identifier: Apache-2.0

// CompletionCommand: the commands and options of `muster`, and the scripts with which shells
// complete them.
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
  std::vector<std::string> choices;  // the allowed values; empty: any value
};

struct CompletionCommand {
  std::string path;  // "batch list"; empty: the program itself
  std::string name;  // the last word of it
  std::string about;
  std::vector<CompletionCommand> commands;
  std::vector<CompletionOption> options;
  bool takes_arguments = false;
};

// All commands and options that are for people; hidden ones are left out.
CompletionCommand WordsOf(const CLI::App& app);

// `tree` and all commands below it, each command before its own subcommands.
std::vector<const CompletionCommand*> AllCommands(const CompletionCommand& tree);

// The scripts by which shells complete `muster` command lines.
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
