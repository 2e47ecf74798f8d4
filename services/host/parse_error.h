// SPDX-License-Identifier: Apache-2.0

// Mistakes on a command line and in the variables that stand for its options.
#pragma once

#include <string>

#include "absl/types/span.h"

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace muster::host {

// Call this after `app` has parsed. From 2.4 on, CLI11 silently ignores an environment variable if
// its whole text fails a check, even if the text is a list; this reads such variables again. Throws
// CLI::ParseError.
void TakeRefusedVariables(CLI::App* app);
// What `mistake` says. Of an option that none of `words`, those of the command line, gives to
// `command`, it names the environment variable that was read for it.
std::string WithVariable(const CLI::App& command, const CLI::ParseError& mistake,
                         absl::Span<const char* const> words);
// Prints that to stderr, and returns CLI11's code for it; or prints the help or the version that
// was asked for to stdout, and returns 0.
int AnswerParseError(const CLI::App& app, const CLI::ParseError& error,
                     absl::Span<const char* const> words);

}  // namespace muster::host
