#include "services/scaling-agent/queue_names.h"

#include "absl/strings/strip.h"
#include "muster/item/queue_names.h"

namespace muster::scaling_agent {

absl::string_view NameOf(absl::string_view queue, const std::vector<std::string>& names) {
  absl::string_view found;
  for (const std::string& name : names) {
    if (name == queue) return name;
    if (found.empty() && MatchesQueue(name, queue)) found = name;
  }
  return found;
}

absl::string_view WithoutPartition(absl::string_view name) {
  const size_t end = name.find_last_not_of("0123456789");
  if (end == absl::string_view::npos || end + 1 == name.size() || name[end] != '-') return name;
  return name.substr(0, end);
}

std::optional<std::string> JobOf(absl::string_view name, const std::vector<std::string>& jobs) {
  for (const std::string& job : jobs) {
    if (MatchesQueue(item::InputName(job), name)) return job;
  }
  absl::string_view job = WithoutPartition(name);
  if (!absl::ConsumeSuffix(&job, item::InputName("")) || job.empty()) return std::nullopt;
  return std::string(job);
}

absl::string_view WithinAccount(absl::string_view queue, absl::string_view account) {
  if (!absl::ConsumePrefix(&queue, account) || !absl::ConsumePrefix(&queue, "/")) return "";
  return queue;
}

}  // namespace muster::scaling_agent
