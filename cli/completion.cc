// SPDX-License-Identifier: Apache-2.0

// muster completion bash | zsh | fish

#include "cli/completion.h"

#include <ostream>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "cli/app.h"
#include "cli/output/environment.h"

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

namespace {

// In single quotes a POSIX shell leaves everything as it is.
std::string ShellQuoted(absl::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

std::string FishQuoted(absl::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"'", "\\'"}}), "'");
}

std::string PathsOfAll(const CompletionCommand& tree, absl::string_view separator) {
  std::vector<std::string> paths;
  for (const CompletionCommand* const command : AllCommands(tree)) {
    if (!command->path.empty()) paths.push_back(ShellQuoted(command->path));
  }
  return absl::StrJoin(paths, separator);
}

std::string CommandNamesOf(const CompletionCommand& command) {
  return absl::StrJoin(command.commands, " ", [](std::string* out, const CompletionCommand& below) {
    out->append(below.name);
  });
}

std::string OptionNamesOf(const CompletionCommand& command) {
  return absl::StrJoin(command.options, " ", [](std::string* out, const CompletionOption& option) {
    absl::StrAppend(out, absl::StrJoin(option.names, " "));
  });
}

// A case for the word before the cursor: "'batch list -o' | 'batch list --output')".
std::string ValueCase(const CompletionCommand& command, const std::vector<std::string>& names,
                      absl::string_view action) {
  const auto append = [&command](std::string* out, const std::string& name) {
    out->append(ShellQuoted(absl::StrCat(command.path, " ", name)));
  };
  return absl::StrCat("    ", absl::StrJoin(names, " | ", append), ") ", action, "; return ;;\n");
}

// For options with a value: those with choices offer them by the command `offer`, others files.
std::string ValueCases(const CompletionCommand& tree, absl::string_view offer,
                       absl::string_view files) {
  std::string cases;
  for (const CompletionCommand* const command : AllCommands(tree)) {
    std::vector<std::string> free;
    for (const CompletionOption& option : command->options) {
      if (!option.takes_value) continue;
      if (option.choices.empty()) {
        free.insert(free.end(), option.names.begin(), option.names.end());
      } else {
        const std::string choices = absl::StrJoin(option.choices, " ");
        cases += ValueCase(*command, option.names, absl::StrCat(offer, " ", choices));
      }
    }
    if (!free.empty()) cases += ValueCase(*command, free, files);
  }
  return cases;
}

constexpr char kBashOffer[] =
    "__muster_offer() {\n"
    "  COMPREPLY=($(compgen -W \"$*\" -- \"$current\"))\n"
    "}\n";

// "--output=js" comes as three words.
constexpr char kBashWords[] =
    "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}\n"
    "  if [[ $current == = ]]; then\n"
    "    current=\n"
    "  elif [[ $previous == = ]]; then\n"
    "    previous=${COMP_WORDS[COMP_CWORD - 2]}\n"
    "  fi\n";

// `name: about` for each, as zsh's _describe takes them.
std::string ZshDescribed(const CompletionCommand& command) {
  std::string lines = "      commands=(";
  for (const CompletionCommand& below : command.commands) {
    absl::StrAppend(&lines, "\n        ", ShellQuoted(absl::StrCat(below.name, ":", below.about)));
  }
  absl::StrAppend(&lines, ")\n      options=(");
  for (const CompletionOption& option : command.options) {
    for (const std::string& name : option.names) {
      absl::StrAppend(&lines, "\n        ", ShellQuoted(absl::StrCat(name, ":", option.about)));
    }
  }
  return absl::StrCat(lines, ")");
}

constexpr char kFishAt[] =
    "function __muster_at\n"
    "  set -l at\n"
    "  for word in (commandline -opc)[2..-1]\n"
    "    set -l next $at $word\n"
    "    contains -- \"$next\" $__muster_commands; and set at $next\n"
    "  end\n"
    "  test \"$at\" = \"$argv\"\n"
    "end\n";

std::string FishOption(const CompletionOption& option) {
  std::string line;
  for (const std::string& name : option.names) {
    const bool is_long = name.size() > 2;
    absl::StrAppend(&line, is_long ? " -l " : " -s ", name.substr(is_long ? 2 : 1));
  }
  if (option.takes_value && option.choices.empty()) absl::StrAppend(&line, " -r -F");
  if (!option.choices.empty()) {
    absl::StrAppend(&line, " -x -a ", FishQuoted(absl::StrJoin(option.choices, " ")));
  }
  return absl::StrCat(line, " -d ", FishQuoted(option.about), "\n");
}

}  // namespace

std::string BashCompletion(const CompletionCommand& tree) {
  std::string script = absl::StrCat(
      "# bash completion of muster\n", kBashOffer, "_muster() {\n", kBashWords,
      "  local path= word\n  COMPREPLY=()\n"
      "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD - 1}\"; do\n"
      "    case \"${path:+$path }$word\" in\n    ",
      PathsOfAll(tree, " | "), ") path=\"${path:+$path }$word\" ;;\n    esac\n  done\n");
  absl::StrAppend(&script, "  case \"$path $previous\" in\n",
                  ValueCases(tree, "__muster_offer", ":"),
                  "  esac\n  local commands= options=\n  case \"$path\" in\n");
  for (const CompletionCommand* const command : AllCommands(tree)) {
    absl::StrAppend(&script, "    ", ShellQuoted(command->path),
                    ")\n      commands=", ShellQuoted(CommandNamesOf(*command)),
                    "\n      options=", ShellQuoted(OptionNamesOf(*command)), " ;;\n");
  }
  absl::StrAppend(&script,
                  "  esac\n  if [[ $current == -* ]]; then\n    __muster_offer \"$options\"\n"
                  "  elif [[ $commands ]]; then\n    __muster_offer \"$commands\"\n  fi\n}\n"
                  "complete -o bashdefault -o default -F _muster muster\n");
  return script;
}

std::string ZshCompletion(const CompletionCommand& tree) {
  std::string script = absl::StrCat(
      "#compdef muster\n_muster() {\n  local at= word\n  local -a commands options\n"
      "  for word in \"${(@)words[2,CURRENT-1]}\"; do\n    case \"${at:+$at }$word\" in\n    ",
      PathsOfAll(tree, " | "), ") at=\"${at:+$at }$word\" ;;\n    esac\n  done\n",
      "  case \"$at ${words[CURRENT-1]}\" in\n", ValueCases(tree, "compadd --", "_files"));
  absl::StrAppend(&script, "  esac\n  case \"$at\" in\n");
  for (const CompletionCommand* const command : AllCommands(tree)) {
    absl::StrAppend(&script, "    ", ShellQuoted(command->path), ")\n", ZshDescribed(*command),
                    " ;;\n");
  }
  absl::StrAppend(&script,
                  "  esac\n  if [[ $PREFIX == -* ]]; then\n    _describe -o option options\n"
                  "  elif (( $#commands )); then\n    _describe command commands\n"
                  "  else\n    _files\n  fi\n}\n"
                  "if [[ $funcstack[1] == _muster ]]; then\n  _muster \"$@\"\nelse\n"
                  "  compdef _muster muster\nfi\n");
  return script;
}

std::string FishCompletion(const CompletionCommand& tree) {
  std::string script =
      absl::StrCat("# fish completion of muster\nset -g __muster_commands ", PathsOfAll(tree, " "),
                   "\n", kFishAt, "complete -c muster -f\n");
  for (const CompletionCommand* const command : AllCommands(tree)) {
    const std::string here = absl::StrCat("complete -c muster -n ",
                                          FishQuoted(absl::StrCat("__muster_at ", command->path)));
    for (const CompletionCommand& below : command->commands) {
      absl::StrAppend(&script, here, " -a ", below.name, " -d ", FishQuoted(below.about), "\n");
    }
    for (const CompletionOption& option : command->options) {
      absl::StrAppend(&script, here, FishOption(option));
    }
    if (command->takes_arguments) absl::StrAppend(&script, here, " -F\n");
  }
  return script;
}

// Reads the commands of `app` only when it runs, so that the script includes `completion` itself
// and all commands that are added later.
void AddCompletion(CLI::App* app, const Environment& environment) {
  CLI::App* const parent =
      app->add_subcommand("completion", "Print what a shell needs to complete muster's words");
  parent->require_subcommand(1);
  const auto add_shell = [&](const char* shell, const char* about, auto script) {
    parent->add_subcommand(shell, about)->callback([app, script, &environment] {
      *environment.out << script(WordsOf(*app));
    });
  };
  add_shell("bash", "For ~/.bashrc: source <(muster completion bash)", BashCompletion);
  add_shell("zsh", "For ~/.zshrc, after compinit: source <(muster completion zsh)", ZshCompletion);
  add_shell("fish", "For ~/.config/fish/config.fish: muster completion fish | source",
            FishCompletion);
}

}  // namespace muster::cli
