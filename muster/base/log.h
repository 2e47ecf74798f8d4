// SPDX-License-Identifier: Apache-2.0

// Structured logging: one event, one line of key=value pairs on stderr.
//
//   Log(kWarning, "handler failed", {{"item", "1/7"}, {"attempt", 2}, {"why", status.ToString()}});
//   time=2011-11-11T00:00:00.000Z level=warning msg="handler failed" item=1/7 attempt=2 why="…"
//
// or, as JSON, an object of strings:
//
//   {"time":"2011-11-11T00:00:00.000Z","level":"warning","msg":"handler failed","item":"1/7",…}
//
// No value breaks the line in two: values are quoted and escaped where they need it, and cut when
// they are long.
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "muster/base/trace_context.h"

namespace muster::base {

enum class LogLevel { kDebug, kInfo, kWarning, kError };
using enum LogLevel;

// "debug", "info", "warning", "error".
absl::string_view LogLevelName(LogLevel level);
std::optional<LogLevel> ParseLogLevel(absl::string_view name);

enum class LogFormat { kText, kJson };

// Longer values, and messages, end in "…".
inline constexpr size_t kMaxLogValueBytes = 4096;

// Holds views; valid only during the call of Log that it is an argument of.
struct LogField {
  LogField(absl::string_view field_key, const absl::AlphaNum& field_value)
      : key(field_key), value(field_value.Piece()) {}

  absl::string_view key;  // [a-z0-9_.]; anything else becomes "_"
  absl::string_view value;
};

// Thread-safe; lines never mix. Costs one comparison below the minimum level. A line that stderr
// does not take, as on a full disk, is lost; the next one that it takes comes after a line that
// says how many were.
void Log(LogLevel level, absl::string_view message, std::initializer_list<LogField> fields = {});

// Logs `status`, as the last field "why"; nothing if it is OK.
void LogUnlessOk(LogLevel level, absl::string_view message, const absl::Status& status,
                 std::initializer_list<LogField> fields = {});

// kInfo until set. Thread-safe.
void SetMinLogLevel(LogLevel level);
LogLevel MinLogLevel();

// kText until set. Thread-safe.
void SetLogFormat(LogFormat format);

// The line, without a line feed, that Log writes.
std::string FormatLogLine(LogFormat format, absl::Time time, LogLevel level,
                          absl::string_view message, absl::Span<const LogField> fields);

// While it lives, each line that its thread logs names `trace`, as the fields trace_id and, if
// the trace is sampled, span_id (the context's parent). The latest counts. Null: the lines name
// none. Not owned; outlives this.
class LogTrace {
 public:
  explicit LogTrace(const TraceContext* trace);
  ~LogTrace();
  LogTrace(const LogTrace&) = delete;
  LogTrace& operator=(const LogTrace&) = delete;

 private:
  const TraceContext* const before_;
};

// A line before it is formatted; valid during the call that it is an argument of.
struct LogRecord {
  absl::Time time;
  LogLevel level = kInfo;
  absl::string_view message;
  absl::Span<const LogField> fields;    // without those of `trace`
  const TraceContext* trace = nullptr;  // as of LogTrace
};

// Sees each record that is logged, beside the sink, from one thread at a time. It must not log.
using LogObserver = std::function<void(const LogRecord& record)>;

// Replaces the observer; nullptr: there is none. When this returns, the one before does not run.
void SetLogObserver(LogObserver observer);

// Takes each line, without its line feed, from one thread at a time. It must not log.
using LogSink = std::function<void(absl::string_view line)>;

// Replaces the sink and returns the one before; nullptr is stderr. Thread-safe.
LogSink SetLogSink(LogSink sink);

}  // namespace muster::base
