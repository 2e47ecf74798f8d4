// The environment of a program that is to be started, and texts as exec takes them.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace muster::os {

// "NAME=value" of each variable: this process's own, with `changes` on top.
std::vector<std::string> MergeEnvironment(
    const std::vector<std::pair<std::string, std::string>>& changes);

// Points into `texts`, which must outlive the result.
std::vector<char*> NullTerminated(const std::vector<std::string>& texts);

}  // namespace muster::os
