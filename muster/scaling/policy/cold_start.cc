#include "muster/scaling/policy/cold_start.h"

#include <algorithm>
#include <vector>

namespace muster::scaling::policy {
namespace {

constexpr size_t kStarts = 100;
constexpr size_t kEnoughStarts = 5;

}  // namespace

bool ColdStart::See(absl::Duration measured) {
  if (measured < absl::ZeroDuration() || measured > absl::Hours(24)) return false;
  measured_.push_back(measured);
  if (measured_.size() > kStarts) measured_.pop_front();
  return true;
}

absl::Duration ColdStart::P95() const {
  std::vector<absl::Duration> sorted(measured_.begin(), measured_.end());
  std::sort(sorted.begin(), sorted.end());
  if (sorted.size() < kEnoughStarts) {
    return sorted.empty() ? prior_ : std::max(prior_, sorted.back());
  }
  return sorted[(sorted.size() * 95 + 99) / 100 - 1];
}

}  // namespace muster::scaling::policy
