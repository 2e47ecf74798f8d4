// Misuse: what is wrong with a command line that could not be read.
#pragma once

#include <string>

namespace CLI {
class App;
}  // namespace CLI

namespace muster::cli {

// Names the first word of a parsed command line that no command takes, and what may have been meant
// by it. Two lines; empty where every word was taken.
std::string ExplainUnknownWord(const CLI::App& app);

}  // namespace muster::cli
