// What a plot shows of a run, second by second.
#pragma once

#include <cstdint>
#include <functional>

namespace muster::scaling::replay {

struct SeriesPoint {
  int64_t second = 0;   // since the trace's start
  int64_t arrived = 0;  // items, at this second
  int64_t outstanding = 0;
  double replicas = 0;     // ready and starting
  int64_t violations = 0;  // items found late since the last point
};

using SeriesSink = std::function<void(const SeriesPoint&)>;

}  // namespace muster::scaling::replay
