#include "services/scaling-agent/queue_names.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/strip.h"

namespace muster::scaling_agent {

bool Means(absl::string_view name, absl::string_view queue) {
  if (!absl::ConsumePrefix(&queue, name)) return false;
  if (queue.empty()) return true;
  return absl::ConsumePrefix(&queue, "-") && !queue.empty() &&
         std::all_of(queue.begin(), queue.end(),
                     [](char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); });
}

absl::string_view NameOf(absl::string_view queue, const std::vector<std::string>& names) {
  absl::string_view found;
  for (const std::string& name : names) {
    if (name == queue) return name;
    if (found.empty() && Means(name, queue)) found = name;
  }
  return found;
}

std::optional<std::string> JobOf(absl::string_view name) {
  constexpr absl::string_view kInput = "-in";
  const size_t end = name.rfind(kInput);
  if (end == absl::string_view::npos || end == 0) return std::nullopt;
  const absl::string_view job = name.substr(0, end);
  if (!Means(name.substr(0, end + kInput.size()), name)) return std::nullopt;
  return std::string(job);
}

absl::string_view WithinAccount(absl::string_view queue, absl::string_view account) {
  if (!absl::ConsumePrefix(&queue, account) || !absl::ConsumePrefix(&queue, "/")) return "";
  return queue;
}

}  // namespace muster::scaling_agent
