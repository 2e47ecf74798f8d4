// SPDX-License-Identifier: Apache-2.0

// Commands of a command line, and what a command says of arguments that it does not take: see
// option.h.
#pragma once

#include <functional>
#include <string>

#include "muster/args/option.h"

namespace muster::args {

// Adds the command `name` to `parent`, which owns it.
CLI::App* AddSubcommand(CLI::App* parent, const std::string& name, const std::string& about);
// The command of that name that `parent` has; it must have one.
CLI::App* FindSubcommand(CLI::App* parent, const std::string& name);
// Shows neither the command nor its name to people: another program calls it.
void Hide(CLI::App* command);
// One of its commands must be named.
void RequireSubcommand(CLI::App* command);
// When the command line names the command: `run` is called after all has been read and checked,
// `check` before that, when this command's own options have been read.
void OnRun(CLI::App* command, std::function<void()> run);
void OnParsed(CLI::App* command, std::function<void()> check);

// A group of options of `command`, for AddToGroup and RequireOptions.
CLI::App* AddOptionGroup(CLI::App* command, const std::string& name);
// Moves an option of the command into its group.
void AddToGroup(CLI::App* group, Option option);
// At least so many of the group must be given; 0 as `most`: there is no bound above.
void RequireOptions(CLI::App* group, size_t least, size_t most);

// What a callback says of what it was given; they throw what CLI11 throws (CLI::ParseError).
// The text of the option `name` is wrong, and why.
[[noreturn]] void Refuse(const std::string& name, const std::string& why);
// `name` and `other` were both given.
[[noreturn]] void RefuseBoth(const std::string& name, const std::string& other);
// `name` was given without `other`.
[[noreturn]] void RefuseWithout(const std::string& name, const std::string& other);
// `name` is missing.
[[noreturn]] void RefuseMissing(const std::string& name);

}  // namespace muster::args
