// SPDX-License-Identifier: Apache-2.0
#include "muster/args/command.h"

#include <utility>

#include "CLI/CLI.hpp"

namespace muster::args {

CLI::App* AddSubcommand(CLI::App* parent, const std::string& name, const std::string& about) {
  return parent->add_subcommand(name, about);
}

CLI::App* FindSubcommand(CLI::App* parent, const std::string& name) {
  return parent->get_subcommand(name);
}

void Hide(CLI::App* command) { command->group(""); }

void RequireSubcommand(CLI::App* command) { command->require_subcommand(1); }

void OnRun(CLI::App* command, std::function<void()> run) { command->callback(std::move(run)); }

void OnParsed(CLI::App* command, std::function<void()> check) {
  command->parse_complete_callback(std::move(check));
}

CLI::App* AddOptionGroup(CLI::App* command, const std::string& name) {
  return command->add_option_group(name);
}

void AddToGroup(CLI::App* group, Option option) {
  static_cast<CLI::Option_group*>(group)->add_option(option.get());
}

void RequireOptions(CLI::App* group, size_t least, size_t most) {
  group->require_option(least, most);
}

void Refuse(const std::string& name, const std::string& why) {
  throw CLI::ValidationError(name, why);
}

void RefuseBoth(const std::string& name, const std::string& other) {
  throw CLI::ExcludesError(name, other);
}

void RefuseWithout(const std::string& name, const std::string& other) {
  throw CLI::RequiresError(name, other);
}

void RefuseMissing(const std::string& name) { throw CLI::RequiredError(name); }

}  // namespace muster::args
