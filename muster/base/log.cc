// SPDX-License-Identifier: Apache-2.0
#include "muster/base/log.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/base/status.h"
#include "muster/base/text.h"

namespace muster::base {
namespace {

constexpr std::array<absl::string_view, 4> kLevelNames = {"debug", "info", "warning", "error"};

std::atomic<LogLevel> min_level{LogLevel::kInfo};
std::atomic<LogFormat> log_format{LogFormat::kText};

struct Output {
  Mutex mu;
  LogSink sink ABSL_GUARDED_BY(mu);
  LogObserver observer ABSL_GUARDED_BY(mu);
  size_t lost_lines ABSL_GUARDED_BY(mu) = 0;  // since stderr took the last one
  bool is_cut ABSL_GUARDED_BY(mu) = false;    // stderr took the beginning of a line
};

// Never destroyed, so that threads may log until the process is gone.
Output& TheOutput() {
  static Output* const output = new Output;
  return *output;
}

// Whether stderr takes all of the line: a full disk, or a reader that has left, does not.
bool WriteToStderr(absl::string_view line, Output* output)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(output->mu) {
  const std::string bytes = absl::StrCat(output->is_cut ? "\n" : "", line, "\n");
  absl::string_view rest = bytes;
  while (!rest.empty()) {
    const ssize_t written = write(STDERR_FILENO, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) break;
    rest.remove_prefix(static_cast<size_t>(written));
  }
  const bool is_begun = rest.size() < bytes.size();
  if (is_begun) output->is_cut = !rest.empty();
  return rest.empty();
}

bool IsPlain(absl::string_view value) {
  if (value.empty()) return false;
  for (char c : value) {
    if (c <= ' ' || c > '~' || c == '"' || c == '=' || c == '\\') return false;
  }
  return true;
}

void AppendEscapedByte(unsigned char byte, std::string* out) {
  switch (byte) {
    case '\n':
      *out += "\\n";
      return;
    case '\r':
      *out += "\\r";
      return;
    case '\t':
      *out += "\\t";
      return;
    case '"':
      *out += "\\\"";
      return;
    case '\\':
      *out += "\\\\";
      return;
    default:
      absl::StrAppend(out, "\\x", absl::Hex(byte, absl::kZeroPad2));
  }
}

// Printable UTF-8 passes; control characters, and bytes that are no UTF-8, are escaped.
void AppendQuoted(absl::string_view value, std::string* out) {
  out->push_back('"');
  while (!value.empty()) {
    const size_t size = PrintableUtf8Prefix(value);
    if (size > 1 || (size == 1 && value[0] != '"' && value[0] != '\\')) {
      absl::StrAppend(out, value.substr(0, size));
      value.remove_prefix(size);
    } else {
      AppendEscapedByte(static_cast<unsigned char>(value[0]), out);
      value.remove_prefix(1);
    }
  }
  out->push_back('"');
}

void AppendValue(absl::string_view value, std::string* out) {
  if (value.size() > kMaxLogValueBytes) {
    AppendQuoted(absl::StrCat(value.substr(0, kMaxLogValueBytes), "…"), out);
  } else if (IsPlain(value)) {
    absl::StrAppend(out, value);
  } else {
    AppendQuoted(value, out);
  }
}

std::string KeyOf(absl::string_view key) {
  std::string text(key);
  for (char& c : text) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '.') c = '_';
  }
  return text;
}

// As AppendQuoted, but for JSON, which has no escape for a byte that is no UTF-8.
void AppendJsonString(absl::string_view value, std::string* out) {
  const bool is_long = value.size() > kMaxLogValueBytes;
  value = value.substr(0, kMaxLogValueBytes);
  out->push_back('"');
  while (!value.empty()) {
    const size_t size = PrintableUtf8Prefix(value);
    const auto byte = static_cast<unsigned char>(value[0]);
    if (byte == '"' || byte == '\\') {
      absl::StrAppend(out, "\\", value.substr(0, 1));
    } else if (size > 0) {
      absl::StrAppend(out, value.substr(0, size));
    } else if (byte < 0x80) {
      absl::StrAppend(out, "\\u", absl::Hex(byte, absl::kZeroPad4));
    } else {
      absl::StrAppend(out, "\\ufffd");
    }
    value.remove_prefix(std::max<size_t>(1, size));
  }
  if (is_long) absl::StrAppend(out, "…");
  out->push_back('"');
}

void AppendField(LogFormat format, absl::string_view key, absl::string_view value,
                 std::string* line) {
  if (format == LogFormat::kJson) {
    absl::StrAppend(line, line->empty() ? "{" : ",", "\"", KeyOf(key), "\":");
    AppendJsonString(value, line);
  } else {
    absl::StrAppend(line, line->empty() ? "" : " ", KeyOf(key), "=");
    AppendValue(value, line);
  }
}

thread_local const TraceContext* current_trace = nullptr;

std::string FormatWithTrace(const LogRecord& record) {
  const LogFormat format = log_format.load(std::memory_order_relaxed);
  if (record.trace == nullptr) {
    return FormatLogLine(format, record.time, record.level, record.message, record.fields);
  }
  const std::string trace_id = record.trace->TraceId();
  const std::string span_id = absl::StrCat(absl::Hex(record.trace->parent, absl::kZeroPad16));
  std::vector<LogField> fields(record.fields.begin(), record.fields.end());
  fields.emplace_back("trace_id", trace_id);
  if (record.trace->sampled()) fields.emplace_back("span_id", span_id);
  return FormatLogLine(format, record.time, record.level, record.message, fields);
}

// Work goes on where the log does not. The next line that is taken says how many are missing.
void WriteOrCount(absl::Time time, absl::string_view line, Output* output)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(output->mu) {
  if (output->lost_lines > 0) {
    const std::string gap =
        FormatLogLine(log_format.load(std::memory_order_relaxed), time, kWarning,
                      "stderr took no lines for a while", {LogField("lines", output->lost_lines)});
    if (WriteToStderr(gap, output)) output->lost_lines = 0;
  }
  if (output->lost_lines > 0 || !WriteToStderr(line, output)) ++output->lost_lines;
}

void Write(LogLevel level, absl::string_view message, absl::Span<const LogField> fields) {
  const LogRecord record{RealClock()->Now(), level, message, fields, current_trace};
  const std::string line = FormatWithTrace(record);
  Output& output = TheOutput();
  MutexLock lock(&output.mu);
  if (output.sink) {
    output.sink(line);
  } else {
    WriteOrCount(record.time, line, &output);
  }
  if (output.observer) output.observer(record);
}

}  // namespace

absl::string_view LogLevelName(LogLevel level) { return kLevelNames[static_cast<size_t>(level)]; }

std::optional<LogLevel> ParseLogLevel(absl::string_view name) {
  for (size_t i = 0; i < kLevelNames.size(); ++i) {
    if (kLevelNames[i] == name) return static_cast<LogLevel>(i);
  }
  return std::nullopt;
}

void SetMinLogLevel(LogLevel level) { min_level.store(level, std::memory_order_relaxed); }

LogLevel MinLogLevel() { return min_level.load(std::memory_order_relaxed); }

void SetLogFormat(LogFormat format) { log_format.store(format, std::memory_order_relaxed); }

std::string FormatLogLine(LogFormat format, absl::Time time, LogLevel level,
                          absl::string_view message, absl::Span<const LogField> fields) {
  std::string line;
  AppendField(format, "time", absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", time, absl::UTCTimeZone()),
              &line);
  AppendField(format, "level", LogLevelName(level), &line);
  AppendField(format, "msg", message, &line);
  for (const LogField& field : fields) AppendField(format, field.key, field.value, &line);
  if (format == LogFormat::kJson) line.push_back('}');
  return line;
}

void Log(LogLevel level, absl::string_view message, std::initializer_list<LogField> fields) {
  if (level < MinLogLevel()) return;
  Write(level, message, fields);
}

void LogUnlessOk(LogLevel level, absl::string_view message, const absl::Status& status,
                 std::initializer_list<LogField> fields) {
  if (status.ok() || level < MinLogLevel()) return;
  const std::string why = InWords(status);
  std::vector<LogField> all(fields);
  all.emplace_back("why", why);
  Write(level, message, all);
}

LogTrace::LogTrace(const TraceContext* trace) : before_(std::exchange(current_trace, trace)) {}

LogTrace::~LogTrace() { current_trace = before_; }

void SetLogObserver(LogObserver observer) {
  Output& output = TheOutput();
  MutexLock lock(&output.mu);
  output.observer = std::move(observer);
}

LogSink SetLogSink(LogSink sink) {
  Output& output = TheOutput();
  MutexLock lock(&output.mu);
  return std::exchange(output.sink, std::move(sink));
}

}  // namespace muster::base
