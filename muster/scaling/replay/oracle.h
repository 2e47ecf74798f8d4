// SPDX-License-Identifier: Apache-2.0

// The oracle: the least cost of serving a trace in time. It is computed from a taut string between
// two walls.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "muster/scaling/replay/metrics.h"
#include "muster/scaling/replay/options.h"
#include "muster/scaling/replay/trace.h"

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

// The oracle: the least cost at which any policy could serve a trace in time, if it knew the whole
// trace.
//
//   least  Σ n(t) + L · Σ (n(t) − n(t−1))⁺
//   with   service within a second ≤ μ·n, and cumulative service between A(t − D) and A(t)
//
// n may be any real number: whole replicas never cost less. The oracle knows no bounds but 0,
// starts replicas before their work arrives, and pays L for each start.
//
// Why the scan is exact. Of all ways to serve in time without idling, the taut string between the
// two curves varies least in its rate: a peak of its rate is forced by the work that comes and is
// due between a touch of the upper curve and one of the lower, and a valley by what little work
// there can be between a touch of the lower and one of the upper. To keep a replica through a
// valley costs the gap between its two uses, to start it anew costs L; the gaps of the string are
// the shortest there are, at each level by itself. So each level is kept through gaps up to L.

struct Oracle {
  // From `second` on, `replicas` are ready.
  struct Step {
    int64_t second = 0;
    double replicas = 0;
  };

  double cost_seconds = 0;  // of replicas, with their starts
  double work_seconds = 0;
  double held_seconds = 0;  // of idle replicas
  double starts = 0;
  std::vector<Step> steps;
  std::vector<StringCorner> service;  // items done by second x
};

Oracle FindOracle(const Trace& trace, const SimOptions& options);

// The oracle's metrics, in the form that Simulate returns. `sink` may be empty.
Metrics MeasureOracle(const Oracle& oracle, const Trace& trace, const SimOptions& options,
                      const SeriesSink& sink);

}  // namespace muster::scaling::replay
