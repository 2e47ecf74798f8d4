// A trace: how many items came when.
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

// What came within a second, from its begin to just before its end.
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

// ReadTrace: a trace out of any CSV file with a header.

struct TraceOptions {
  std::string time_column;   // "": the first
  std::string count_column;  // "": the one named count or value; if there is none, a row is 1 item
  // How long a row's items are spread. Without it: until the next row's time, and the last row's
  // as long as the one before it.
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

// The same of text that is read already; `name` stands for the file in errors.
absl::StatusOr<Trace> ParseTrace(absl::string_view text, const std::string& name,
                                 const TraceOptions& options);

}  // namespace muster::scaling::replay
