#include "muster/scaling/replay/taut_string.h"

#include <deque>

#include "muster/base/decimal.h"

namespace muster::scaling::replay {
namespace {

// The way from a to b is steeper than that from b to c.
bool BendsDown(const StringCorner& a, const StringCorner& b, const StringCorner& c) {
  return base::Int128{b.y - a.y} * (c.x - b.x) > base::Int128{c.y - b.y} * (b.x - a.x);
}

bool BendsUp(const StringCorner& a, const StringCorner& b, const StringCorner& c) {
  return base::Int128{b.y - a.y} * (c.x - b.x) < base::Int128{c.y - b.y} * (b.x - a.x);
}

// From its corner on, the string may still go anywhere between two chains: under the upper wall the
// one that bends up only (its greatest convex minorant), over the lower wall the one that bends
// down only. Where a wall forces one chain across the other, the string bends there for good.
class Funnel {
 public:
  explicit Funnel(StringCorner start) : corners_{start} {}

  void UnderUpper(const StringCorner& point) { Add(point, BendsDown, &upper_, &lower_); }
  void OverLower(const StringCorner& point) { Add(point, BendsUp, &lower_, &upper_); }

  // The walls meet in `last`, so that both chains are the straight way to it by now.
  std::vector<StringCorner> End(const StringCorner& last) {
    if (corners_.back().x != last.x) corners_.push_back(last);
    return std::move(corners_);
  }

 private:
  using Bends = bool (*)(const StringCorner&, const StringCorner&, const StringCorner&);

  void Add(const StringCorner& point, Bends wrong, std::deque<StringCorner>* own,
           std::deque<StringCorner>* other) {
    while (!own->empty() && wrong(Before(*own), own->back(), point)) own->pop_back();
    if (own->empty()) {
      // Where the straight way to the point is cut off by the other chain, it goes round that.
      while (!other->empty() && wrong(corners_.back(), other->front(), point)) {
        corners_.push_back(other->front());
        other->pop_front();
      }
    }
    own->push_back(point);
  }

  const StringCorner& Before(const std::deque<StringCorner>& chain) const {
    return chain.size() > 1 ? chain[chain.size() - 2] : corners_.back();
  }

  std::vector<StringCorner> corners_;
  std::deque<StringCorner> upper_;
  std::deque<StringCorner> lower_;
};

}  // namespace

std::vector<StringCorner> PullTaut(absl::Span<const int64_t> lower,
                                   absl::Span<const int64_t> upper) {
  Funnel funnel({0, upper[0]});
  const auto size = static_cast<int64_t>(upper.size());
  for (int64_t x = 1; x < size; ++x) {
    funnel.UnderUpper({x, upper[static_cast<size_t>(x)]});
    funnel.OverLower({x, lower[static_cast<size_t>(x)]});
  }
  return funnel.End({size - 1, upper.back()});
}

}  // namespace muster::scaling::replay
