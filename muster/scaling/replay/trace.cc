// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/replay/trace.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "muster/base/decimal.h"
#include "muster/base/quantity.h"
#include "muster/base/status.h"
#include "muster/base/text.h"
#include "muster/input/byte_source.h"
#include "muster/input/csv_record.h"
#include "muster/input/format.h"
#include "muster/scaling/replay/options.h"
#include "muster/scaling/replay/timestamp.h"

namespace muster::scaling::replay {

namespace {

// The number of items that arrived before `at_us`.
int64_t ComeBefore(const Arrival& arrival, int64_t at_us) {
  if (at_us <= arrival.at_us) return 0;
  if (at_us - arrival.at_us >= arrival.period_us) return arrival.items;
  // Item j comes at floor(j·period/n): before x where j·period < x·n.
  const base::Int128 reach = base::Int128{at_us - arrival.at_us} * arrival.items;
  return static_cast<int64_t>((reach + arrival.period_us - 1) / arrival.period_us);
}

}  // namespace

std::vector<SecondOfTrace> BySecond(const Trace& trace) {
  std::vector<SecondOfTrace> seconds;
  // Rows are in order, but their periods may reach beyond the next row: those wait here.
  std::map<int64_t, int64_t> open;
  const auto flush_before = [&](int64_t second) {
    while (!open.empty() && open.begin()->first < second) {
      seconds.push_back({open.begin()->first, open.begin()->second});
      open.erase(open.begin());
    }
  };
  for (const Arrival& arrival : trace.arrivals) {
    int64_t second = arrival.at_us / kSecondUs;
    flush_before(second);
    for (int64_t come = 0; come < arrival.items; ++second) {
      const int64_t by_then = ComeBefore(arrival, (second + 1) * kSecondUs);
      if (by_then > come) open[second] += by_then - come;
      come = by_then;
    }
  }
  flush_before(INT64_MAX);
  return seconds;
}

std::vector<Instant> ByInstant(const Trace& trace) {
  std::vector<Instant> instants;
  bool ordered = true;
  const auto add = [&](int64_t at_us, int64_t items) {
    if (!instants.empty() && instants.back().at_us == at_us) {
      instants.back().items += items;
      return;
    }
    ordered &= instants.empty() || instants.back().at_us < at_us;
    instants.push_back({at_us, items});
  };
  for (const Arrival& arrival : trace.arrivals) {
    if (arrival.period_us == 0) {
      add(arrival.at_us, arrival.items);
      continue;
    }
    for (int64_t j = 0; j < arrival.items; ++j) {
      const base::Int128 lapse = base::Int128{arrival.period_us} * j / arrival.items;
      add(arrival.at_us + static_cast<int64_t>(lapse), 1);
    }
  }
  if (!ordered) {
    std::stable_sort(instants.begin(), instants.end(),
                     [](const Instant& a, const Instant& b) { return a.at_us < b.at_us; });
  }
  return instants;
}

namespace {

constexpr absl::string_view kByteOrderMark = "\xef\xbb\xbf";
constexpr char kDelimiter = ',';
constexpr size_t kNoColumn = static_cast<size_t>(-1);

absl::Status Bad(absl::string_view name, int64_t line, absl::string_view reason) {
  return absl::InvalidArgumentError(absl::StrCat(name, " line ", line, ": ", reason));
}

// The records of a CSV text, one after the other.
class CsvWalk {
 public:
  CsvWalk(absl::string_view text, std::string name) : rest_(text), name_(std::move(name)) {
    absl::ConsumePrefix(&rest_, kByteOrderMark);
  }

  // False at the end. Fields stay valid until the next call.
  absl::StatusOr<bool> Next() {
    while (SkipEmptyLine()) {
    }
    if (rest_.empty()) return false;
    const input::CsvRecord record =
        input::MeasureCsvRecord(rest_, kDelimiter, input::kMaxRecordBytes);
    line_ = next_line_;
    if (record.fault != input::CsvRecord::Fault::kNone) {
      return Bad(name_, line_, input::FaultReason(record));
    }
    const absl::string_view text = rest_.substr(0, record.text);
    if (room_.size() < text.size()) room_.resize(text.size());
    fields_.clear();
    char* room = room_.data();
    input::SplitCsvFields(text, kDelimiter, &room, &fields_);
    rest_.remove_prefix(record.bytes);
    next_line_ += record.lines;
    return true;
  }

  const std::vector<absl::string_view>& fields() const { return fields_; }
  int64_t line() const { return line_; }
  const std::string& name() const { return name_; }

 private:
  bool SkipEmptyLine() {
    if (!absl::ConsumePrefix(&rest_, "\n") && !absl::ConsumePrefix(&rest_, "\r\n")) return false;
    ++next_line_;
    return true;
  }

  absl::string_view rest_;
  const std::string name_;
  int64_t next_line_ = 1;
  int64_t line_ = 0;
  std::string room_;
  std::vector<absl::string_view> fields_;
};

struct Columns {
  size_t time = 0;
  size_t count = kNoColumn;
  size_t least_fields = 1;
};

size_t FindColumn(const std::vector<std::string>& names, absl::string_view wanted) {
  for (size_t i = 0; i < names.size(); ++i) {
    if (absl::EqualsIgnoreCase(names[i], wanted)) return i;
  }
  return kNoColumn;
}

absl::StatusOr<size_t> RequireColumn(const CsvWalk& walk, const std::vector<std::string>& names,
                                     const std::string& wanted) {
  const size_t found = FindColumn(names, wanted);
  if (found != kNoColumn) return found;
  return Bad(
      walk.name(), walk.line(),
      absl::StrCat("there is no column ", base::Quoted(wanted), base::DidYouMean(wanted, names),
                   "; the header has ", base::ListNames(names)));
}

absl::StatusOr<Columns> FindColumns(CsvWalk* walk, const TraceOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(const bool any, walk->Next());
  if (!any) return Bad(walk->name(), 1, "the file is empty: a trace begins with a header");
  std::vector<std::string> names;
  for (const absl::string_view field : walk->fields()) {
    names.emplace_back(absl::StripAsciiWhitespace(field));
  }
  if (ParseTimestamp(names[0]).has_value()) {
    return Bad(walk->name(), walk->line(), "this is a row, but a trace begins with a header");
  }
  Columns columns;
  if (!options.time_column.empty()) {
    MUSTER_ASSIGN_OR_RETURN(columns.time, RequireColumn(*walk, names, options.time_column));
  }
  if (!options.count_column.empty()) {
    MUSTER_ASSIGN_OR_RETURN(columns.count, RequireColumn(*walk, names, options.count_column));
  } else {
    columns.count = FindColumn(names, "count");
    if (columns.count == kNoColumn) columns.count = FindColumn(names, "value");
  }
  columns.least_fields = std::max(columns.time, columns.count == kNoColumn ? 0 : columns.count) + 1;
  return columns;
}

// Rounds the running sum instead of each row, so that rounding errors do not add up.
class Rounding {
 public:
  explicit Rounding(double scale) : scale_(scale) {}

  int64_t Take(double count) {
    sum_ += count * scale_;
    const auto rounded = static_cast<int64_t>(std::floor(sum_ + 0.5));
    const int64_t items = rounded - taken_;
    taken_ = rounded;
    return items;
  }

  double sum() const { return sum_; }

 private:
  const double scale_;
  double sum_ = 0;
  int64_t taken_ = 0;
};

struct Row {
  absl::Time at;
  double count = 1;
};

absl::StatusOr<Row> ReadRow(const CsvWalk& walk, const Columns& columns) {
  const std::vector<absl::string_view>& fields = walk.fields();
  if (fields.size() < columns.least_fields) {
    return Bad(walk.name(), walk.line(),
               absl::StrCat("there are ", fields.size(), " fields, but column ",
                            columns.least_fields, " is needed"));
  }
  Row row;
  const std::optional<absl::Time> at = ParseTimestamp(fields[columns.time]);
  if (!at.has_value()) {
    return Bad(
        walk.name(), walk.line(),
        absl::StrCat(base::Quoted(fields[columns.time]), " is no time: ISO 8601 or seconds are"));
  }
  row.at = *at;
  if (columns.count == kNoColumn) return row;
  const absl::string_view count = fields[columns.count];
  if (!absl::SimpleAtod(count, &row.count) || !std::isfinite(row.count)) {
    return Bad(walk.name(), walk.line(), absl::StrCat(base::Quoted(count), " is no count"));
  }
  if (row.count < 0) {
    return Bad(walk.name(), walk.line(), absl::StrCat("the count ", count, " is negative"));
  }
  return row;
}

// Turns rows into arrivals; a row's period is known only when the next row comes.
class TraceBuilder {
 public:
  TraceBuilder(const TraceOptions& options, const CsvWalk& walk)
      : options_(options), walk_(walk), rounding_(options.scale_counts) {}

  absl::Status Add(const Row& row) {
    if (row.at < last_) {
      return Bad(walk_.name(), walk_.line(), "the row is earlier than the one before it");
    }
    last_ = row.at;
    if (options_.from.has_value() && row.at < *options_.from) return absl::OkStatus();
    if (rows_ > 0) CloseRow(row.at);
    if (options_.to.has_value() && row.at >= *options_.to) {
      ended_ = true;
      return absl::OkStatus();
    }
    if (rows_++ == 0) trace_.start = FloorSecond(row.at);
    if (row.at - trace_.start > kMaxSpan) {
      return TooMuch(absl::StrCat("the trace is longer than ", base::DurationToString(kMaxSpan)));
    }
    at_us_ = absl::ToInt64Microseconds(row.at - trace_.start);
    // Checked before it is rounded: a double of more does not fit.
    if (!(row.count * options_.scale_counts + rounding_.sum() <= kMaxItems)) {
      return TooMuch(absl::StrCat("there are more than ", kMaxItems, " items"));
    }
    items_ = rounding_.Take(row.count);
    return absl::OkStatus();
  }

  bool ended() const { return ended_; }

  absl::StatusOr<Trace> Build() {
    if (rows_ == 0) {
      return Bad(walk_.name(), walk_.line(),
                 options_.from.has_value() || options_.to.has_value()
                     ? "no row lies in the time that was asked for"
                     : "there are no rows");
    }
    if (!ended_) CloseRowAfter(last_period_us_);
    return std::move(trace_);
  }

 private:
  static absl::Time FloorSecond(absl::Time at) {
    return absl::FromUnixSeconds(absl::ToUnixSeconds(at));
  }

  absl::Status TooMuch(const std::string& reason) const {
    return absl::OutOfRangeError(absl::StrCat(walk_.name(), " line ", walk_.line(), ": ", reason));
  }

  void CloseRow(absl::Time next) {
    CloseRowAfter(absl::ToInt64Microseconds(next - trace_.start) - at_us_);
  }

  void CloseRowAfter(int64_t period_us) {
    last_period_us_ = period_us;
    if (options_.period.has_value()) period_us = absl::ToInt64Microseconds(*options_.period);
    if (items_ > 0) trace_.arrivals.push_back({at_us_, items_, period_us});
    trace_.items += items_;
    trace_.seconds = std::max(trace_.seconds, (at_us_ + period_us + kSecondUs - 1) / kSecondUs);
  }

  const TraceOptions& options_;
  const CsvWalk& walk_;
  Rounding rounding_;
  Trace trace_;
  absl::Time last_ = absl::InfinitePast();
  int64_t rows_ = 0;
  int64_t at_us_ = 0;  // of the row whose period is not known yet
  int64_t items_ = 0;
  int64_t last_period_us_ = 0;
  bool ended_ = false;
};

absl::StatusOr<std::string> ReadAll(const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<input::FileSource> file,
                          input::FileSource::Open(path, "trace"));
  if (file->size() > kMaxTraceBytes) {
    return absl::OutOfRangeError(
        absl::StrCat("trace '", path, "' is larger than ", base::BytesToString(kMaxTraceBytes)));
  }
  std::string text(file->size(), '\0');
  MUSTER_ASSIGN_OR_RETURN(const size_t got, file->Read(0, text.data(), text.size()));
  text.resize(got);
  return text;
}

}  // namespace

absl::StatusOr<Trace> ParseTrace(absl::string_view text, const std::string& name,
                                 const TraceOptions& options) {
  if (!base::IsValidUtf8(text)) {
    return absl::InvalidArgumentError(absl::StrCat(name, " is no text in UTF-8"));
  }
  CsvWalk walk(text, name);
  MUSTER_ASSIGN_OR_RETURN(const Columns columns, FindColumns(&walk, options));
  TraceBuilder builder(options, walk);
  while (!builder.ended()) {
    MUSTER_ASSIGN_OR_RETURN(const bool any, walk.Next());
    if (!any) break;
    MUSTER_ASSIGN_OR_RETURN(const Row row, ReadRow(walk, columns));
    MUSTER_RETURN_IF_ERROR(builder.Add(row));
  }
  return builder.Build();
}

absl::StatusOr<Trace> ReadTrace(const std::string& path, const TraceOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(const std::string text, ReadAll(path));
  return ParseTrace(text, absl::StrCat("trace '", path, "'"), options);
}

}  // namespace muster::scaling::replay
