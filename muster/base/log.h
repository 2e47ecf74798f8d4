// Structured logging: one event, one line of key=value pairs on stderr.
//
//   Log(kWarning, "handler failed", {{"item", "1/7"}, {"attempt", 2}, {"why", status.ToString()}});
//   time=2011-11-11T00:00:00.000Z level=warning msg="handler failed" item=1/7 attempt=2 why="…"
//
// The line stays one line whatever a value holds: values are quoted and escaped where they need it,
// and cut when they are long.
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace muster::base {

enum class LogLevel { kDebug, kInfo, kWarning, kError };
using enum LogLevel;

// "debug", "info", "warning", "error".
absl::string_view LogLevelName(LogLevel level);
std::optional<LogLevel> ParseLogLevel(absl::string_view name);

// Longer values, and messages, end in "…".
inline constexpr size_t kMaxLogValueBytes = 4096;

// Holds views; valid only during the call of Log that it is an argument of.
struct LogField {
  LogField(absl::string_view field_key, const absl::AlphaNum& field_value)
      : key(field_key), value(field_value.Piece()) {}

  absl::string_view key;  // [a-z0-9_.]; anything else becomes "_"
  absl::string_view value;
};

// Thread-safe; lines never mix. Costs one comparison below the minimum level.
void Log(LogLevel level, absl::string_view message, std::initializer_list<LogField> fields = {});

// Logs `status`, as the last field "why"; nothing if it is OK.
void LogUnlessOk(LogLevel level, absl::string_view message, const absl::Status& status,
                 std::initializer_list<LogField> fields = {});

// kInfo until set. Thread-safe.
void SetMinLogLevel(LogLevel level);
LogLevel MinLogLevel();

// The line, without a line feed, that Log writes.
std::string FormatLogLine(absl::Time time, LogLevel level, absl::string_view message,
                          std::initializer_list<LogField> fields);

// Takes each line, without its line feed, from one thread at a time. It must not log.
using LogSink = std::function<void(absl::string_view line)>;

// Replaces the sink and returns the one before; nullptr is stderr. Thread-safe.
LogSink SetLogSink(LogSink sink);

}  // namespace muster::base
