// Misuse: what is wrong with a command line that could not be read.
#pragma once

#include <string>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace muster::cli {

// Names the first word of a parsed command line that no command takes, and what may have been meant
// by it. Two lines; empty where every word was taken.
std::string ExplainUnknownWord(const CLI::App& app);

// Of a word that `app`, a command or the program, does not take. Two lines.
std::string ExplainUnknownArgument(const CLI::App& app, const std::string& word);

// Of a parsed command line of known words: what is missing or malformed, and in which command. Two
// lines.
std::string ExplainParseError(const CLI::App& app, const CLI::ParseError& mistake);

}  // namespace muster::cli
