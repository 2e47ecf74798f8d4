#include "muster/scaling/rules/queue_names.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "muster/base/safe_name.h"

namespace muster::scaling::rules {

namespace {

bool IsDigit(char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); }

bool IsWrittenSo(absl::string_view name, absl::string_view queue) {
  if (!absl::ConsumePrefix(&queue, name)) return false;
  if (queue.empty()) return true;
  return absl::ConsumePrefix(&queue, "-") && !queue.empty() &&
         std::all_of(queue.begin(), queue.end(), IsDigit);
}

// What stands before the hash only tells which partition to compare with: the name that is made of
// `name` decides.
bool IsMadeOf(absl::string_view name, absl::string_view queue) {
  const absl::string_view start = base::BeforeHash(queue);
  if (start.empty()) return false;
  if (queue == base::MakeSafeName(name)) return true;
  const auto digits = std::find_if_not(start.rbegin(), start.rend(), IsDigit).base();
  int64_t partition = 0;
  return absl::SimpleAtoi(start.substr(static_cast<size_t>(digits - start.begin())), &partition) &&
         queue == base::PartitionName(name, partition);
}

}  // namespace

bool MatchesQueue(absl::string_view name, absl::string_view queue) {
  return IsWrittenSo(name, queue) || IsMadeOf(name, queue);
}

}  // namespace muster::scaling::rules
