#include "muster/scaling/policy/reckoning.h"

#include <algorithm>

#include "muster/scaling/policy/limits.h"

namespace muster::scaling::policy {
namespace {

constexpr absl::Duration kSpacing = absl::Milliseconds(500);

}  // namespace

void CompletionEstimate::See(absl::Time now, double items_per_second) {
  Look look{now, 0, items_per_second};
  if (!looks_.empty()) {
    const Look& last = looks_.back();
    look.done = last.done + last.items_per_second * absl::ToDoubleSeconds(now - last.at);
  }
  // Looks in quick succession (a burst of triggers) share one place; the sum stays exact.
  if (looks_.size() > 1 && now - looks_[looks_.size() - 2].at < kSpacing) looks_.pop_back();
  looks_.push_back(look);
  while (looks_.size() > 1 && looks_[1].at <= now - kEstimateHorizon) looks_.pop_front();
}

double CompletionEstimate::DoneSince(absl::Time since) const {
  if (looks_.empty() || since >= looks_.back().at) return 0;
  const auto after =
      std::upper_bound(looks_.begin(), looks_.end(), since,
                       [](absl::Time time, const Look& look) { return time < look.at; });
  if (after == looks_.begin()) return looks_.back().done - looks_.front().done;
  const Look& before = *std::prev(after);
  const double share = absl::FDivDuration(since - before.at, after->at - before.at);
  const double at_since = before.done + share * (after->done - before.done);
  return looks_.back().done - at_since;
}

}  // namespace muster::scaling::policy
