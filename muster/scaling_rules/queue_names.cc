#include "muster/scaling_rules/queue_names.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/strip.h"

namespace muster::scaling_rules {

bool Means(absl::string_view name, absl::string_view queue) {
  if (!absl::ConsumePrefix(&queue, name)) return false;
  if (queue.empty()) return true;
  return absl::ConsumePrefix(&queue, "-") && !queue.empty() &&
         std::all_of(queue.begin(), queue.end(),
                     [](char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); });
}

}  // namespace muster::scaling_rules
