// What the rules of a target mean by the name of a queue.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "muster/scaling/rules/queue_names.h"

namespace muster::scaling_agent {

using scaling::rules::MatchesQueue;

// Of the names in the rules, the one that means `queue`; the exact one first, "" if none does.
absl::string_view NameOf(absl::string_view queue, const std::vector<std::string>& names);

// "retail-in" of "retail-in-0"; a name that ends in no number is itself.
absl::string_view WithoutPartition(absl::string_view name);

// The job whose input queue this name in the rules means, or all its partitions: "retail" for
// "retail-in-0" and for "retail-in". It is one of `jobs`, or else one that is yet to be applied.
// nullopt: it is no job's input queue, or that of none of `jobs` as muster named it.
std::optional<std::string> JobOf(absl::string_view name, const std::vector<std::string>& jobs);

// "account/retail-in-0" → "retail-in-0"; "" where it is another account's.
absl::string_view WithinAccount(absl::string_view queue, absl::string_view account);

}  // namespace muster::scaling_agent
