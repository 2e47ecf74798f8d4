// What the rules of a target mean by the name of a queue.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace muster::scaling_agent {

// Whether `queue` is the queue of this name, or one of its partitions: "retail-in-0" and
// "retail-in-12" are what "retail-in" means.
bool Means(absl::string_view name, absl::string_view queue);

// Of the names in the rules, the one that means `queue`; the exact one first, "" if none does.
absl::string_view NameOf(absl::string_view queue, const std::vector<std::string>& names);

// The job whose input queue this is, or all its partitions: "retail" of "retail-in-0" and of
// "retail-in". nullopt: it is no job's input queue, or its name does not tell which job's.
std::optional<std::string> JobOf(absl::string_view name);

// "account/retail-in-0" → "retail-in-0"; "" where it is another account's.
absl::string_view WithinAccount(absl::string_view queue, absl::string_view account);

}  // namespace muster::scaling_agent
