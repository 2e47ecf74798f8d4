// ReadTrace: a trace out of any CSV file with a header.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/scaling/replay/trace.h"

namespace muster::scaling::replay {

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
