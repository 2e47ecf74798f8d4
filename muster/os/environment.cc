#include "muster/os/environment.h"

#include <unistd.h>

#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace muster::os {

std::vector<std::string> MergeEnvironment(
    const std::vector<std::pair<std::string, std::string>>& changes) {
  std::map<std::string, std::string> merged;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::pair<std::string, std::string> split =
        absl::StrSplit(*variable, absl::MaxSplits('=', 1));
    merged.insert(split);
  }
  for (const auto& [name, value] : changes) merged.insert_or_assign(name, value);
  std::vector<std::string> variables;
  variables.reserve(merged.size());
  for (const auto& [name, value] : merged) variables.push_back(absl::StrCat(name, "=", value));
  return variables;
}

std::vector<char*> NullTerminated(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace muster::os
