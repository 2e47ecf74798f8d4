// SPDX-License-Identifier: Apache-2.0

// Plot: draws a replay as one picture.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/scaling/replay/metrics.h"
#include "muster/scaling/replay/trace.h"

namespace muster::scaling::replay {

// Four panels over the same time: arrivals, backlog, replicas and violations; a line for each
// policy. Lines differ by dashes and width, so that the picture can be read in black and white.
class Plot {
 public:
  // `tail_seconds`: the time shown after the trace's end.
  Plot(const Trace& trace, int64_t tail_seconds);
  ~Plot();

  // Adds a line; the returned sink takes its points and is valid as long as the plot.
  SeriesSink AddPolicy(absl::string_view name);

  // A whole SVG document that refers to nothing outside itself.
  std::string ToSvg() const;

  // The number of columns that the time is divided into. Each shows the maximum of its time (for
  // arrivals and violations the sum).
  static constexpr int kColumns = 640;

 private:
  struct Line;

  size_t ColumnOf(int64_t second) const;

  const absl::Time start_;
  const int64_t seconds_;
  std::vector<double> arrivals_;  // items per second
  std::vector<std::unique_ptr<Line>> lines_;
};

}  // namespace muster::scaling::replay
