// muster completion bash | zsh | fish
#include <memory>
#include <ostream>
#include <string>

#include "CLI/CLI.hpp"
#include "cli/completion_scripts.h"
#include "cli/completion_tree.h"
#include "cli/output/environment.h"

namespace muster::cli {

// Its own command is part of what it prints, and so are those that are added later.
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
