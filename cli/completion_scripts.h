// What a shell must be told to complete `muster` command lines.
//
// Each script finds the command in the words before the cursor, and offers its commands, options,
// or the choices of the option that the cursor follows; elsewhere the names of files.
#pragma once

#include <string>

#include "cli/completion_tree.h"

namespace muster::cli {

// To be sourced.
std::string BashCompletion(const CompletionCommand& tree);
// To be sourced, or put as _muster into a folder of $fpath.
std::string ZshCompletion(const CompletionCommand& tree);
// To be sourced.
std::string FishCompletion(const CompletionCommand& tree);

}  // namespace muster::cli
