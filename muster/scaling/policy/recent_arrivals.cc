#include "muster/scaling/policy/recent_arrivals.h"

#include <algorithm>
#include <vector>

namespace muster::scaling::policy {
namespace {

constexpr absl::Duration kWindow = absl::Minutes(1);
constexpr absl::Duration kApart = absl::Milliseconds(500);  // bounds the looks of a window

// A 99th percentile of fewer would be their largest.
constexpr size_t kBatches = 512;

}  // namespace

void RecentArrivals::See(absl::Time now, int64_t ever) {
  if (looks_.size() > 1 && now - looks_[looks_.size() - 2].at < kApart) looks_.pop_back();
  looks_.push_back({now, ever});
  while (looks_.size() > 2 && looks_[1].at <= now - kWindow) looks_.pop_front();
}

void RecentArrivals::SeeBatch(int64_t items) {
  if (items <= 0) return;
  batches_.push_back(items);
  if (batches_.size() > kBatches) batches_.pop_front();
}

double RecentArrivals::PerSecond() const {
  if (looks_.size() < 2) return 0;
  const double seconds = absl::ToDoubleSeconds(looks_.back().at - looks_.front().at);
  const auto items = static_cast<double>(looks_.back().ever - looks_.front().ever);
  return seconds > 0 ? std::max(0.0, items / seconds) : 0;
}

double RecentArrivals::LargeBatch() const {
  if (batches_.empty()) return 0;
  std::vector<int64_t> sorted(batches_.begin(), batches_.end());
  const auto at = sorted.begin() + static_cast<ptrdiff_t>((sorted.size() - 1) * 99 / 100);
  std::nth_element(sorted.begin(), at, sorted.end());
  return static_cast<double>(*at);
}

}  // namespace muster::scaling::policy
