// TautString: the straightest way between two walls.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace muster::scaling::replay {

// A corner of the string: `x` is an index into the walls.
struct StringCorner {
  int64_t x = 0;
  int64_t y = 0;
};

// The shortest line from the first point to the last that nowhere leaves the tube: lower[x] ≤ y ≤
// upper[x] for each x. Both walls have the same size, at least 1, never cross, and meet at both
// ends. Of all lines in the tube its slope also varies least. Takes time in proportion to the size.
// |y| · size must stay below 2^126.
std::vector<StringCorner> PullTaut(absl::Span<const int64_t> lower,
                                   absl::Span<const int64_t> upper);

}  // namespace muster::scaling::replay
