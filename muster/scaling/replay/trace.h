// SPDX-License-Identifier: Apache-2.0

// A trace: the numbers of items and their arrival times.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace muster::scaling::replay {

inline constexpr int64_t kSecondUs = 1'000'000;

// One row of a trace. Its item j of n (from 0) comes at at_us + j·period_us/n.
struct Arrival {
  int64_t at_us = 0;  // since Trace::start
  int64_t items = 0;
  int64_t period_us = 0;  // 0: all at once
};

struct Trace {
  absl::Time start;               // a whole second; of the first row, or just before it
  std::vector<Arrival> arrivals;  // none of 0 items; at_us never falls
  int64_t items = 0;              // of all arrivals
  int64_t seconds = 0;            // until the last row's period is over, rounded up
};

// The items that arrived within a second, its end excluded.
struct SecondOfTrace {
  int64_t second = 0;  // since Trace::start
  int64_t items = 0;
};

// Seconds without items are left out. Periods may overlap.
std::vector<SecondOfTrace> BySecond(const Trace& trace);

// Items that come at one instant.
struct Instant {
  int64_t at_us = 0;
  int64_t items = 0;
};

// Every instant at which items come, in order.
std::vector<Instant> ByInstant(const Trace& trace);

// ReadTrace: reads a trace from any CSV file with a header.

struct TraceOptions {
  std::string time_column;   // "": the first
  std::string count_column;  // "": the column count or value; without one, a row is 1 item
  // The time over which a row's items are spread. nullopt: until the next row's time; the last row
  // uses the period of the row before it.
  std::optional<absl::Duration> period;
  // Rows from `from` on, and before `to`.
  std::optional<absl::Time> from;
  std::optional<absl::Time> to;
  double scale_counts = 1;  // above 0; sums are rounded, not rows, so that no item gets lost
};

// Names of columns are compared without letter case. A byte order mark, CRLF, quotes and empty
// lines are fine. Errors name the file and the line. NotFound, PermissionDenied: of the file.
// InvalidArgument: it has no header, no such column, no rows (between `from` and `to`), a row with
// too few fields, with a time or count that is none, with a negative count, or earlier than the one
// before it. OutOfRange: more items, or a longer time, than kMaxItems and kMaxSpan allow.
absl::StatusOr<Trace> ReadTrace(const std::string& path, const TraceOptions& options);

// Parses text that was read already; errors use `name` for the file.
absl::StatusOr<Trace> ParseTrace(absl::string_view text, const std::string& name,
                                 const TraceOptions& options);

}  // namespace muster::scaling::replay
