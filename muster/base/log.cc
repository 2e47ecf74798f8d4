#include "muster/base/log.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <utility>

#include "absl/strings/ascii.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/base/text.h"

namespace muster::base {
namespace {

constexpr std::array<absl::string_view, 4> kLevelNames = {"debug", "info", "warning", "error"};

std::atomic<LogLevel> min_level{LogLevel::kInfo};

struct Output {
  Mutex mu;
  LogSink sink ABSL_GUARDED_BY(mu);
};

// Never destroyed, so that threads may log until the process is gone.
Output& TheOutput() {
  static Output* const output = new Output;
  return *output;
}

void WriteToStderr(absl::string_view line) {
  const std::string with_end = absl::StrCat(line, "\n");
  absl::string_view rest = with_end;
  while (!rest.empty()) {
    const ssize_t written = write(STDERR_FILENO, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // stderr is gone: the line is lost
    rest.remove_prefix(static_cast<size_t>(written));
  }
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

void AppendKey(absl::string_view key, std::string* out) {
  for (char c : key) {
    const bool allowed = absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
    out->push_back(allowed ? c : '_');
  }
}

void WriteLine(absl::string_view line) {
  Output& output = TheOutput();
  MutexLock lock(&output.mu);
  if (output.sink) {
    output.sink(line);
  } else {
    WriteToStderr(line);
  }
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

std::string FormatLogLine(absl::Time time, LogLevel level, absl::string_view message,
                          std::initializer_list<LogField> fields) {
  std::string line =
      absl::StrCat("time=", absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", time, absl::UTCTimeZone()),
                   " level=", LogLevelName(level), " msg=");
  AppendValue(message, &line);
  for (const LogField& field : fields) {
    line.push_back(' ');
    AppendKey(field.key, &line);
    line.push_back('=');
    AppendValue(field.value, &line);
  }
  return line;
}

void Log(LogLevel level, absl::string_view message, std::initializer_list<LogField> fields) {
  if (level < MinLogLevel()) return;
  WriteLine(FormatLogLine(RealClock()->Now(), level, message, fields));
}

void LogUnlessOk(LogLevel level, absl::string_view message, const absl::Status& status,
                 std::initializer_list<LogField> fields) {
  if (status.ok() || level < MinLogLevel()) return;
  std::string line = FormatLogLine(RealClock()->Now(), level, message, fields);
  absl::StrAppend(&line, " why=");
  AppendValue(status.ToString(), &line);
  WriteLine(line);
}

LogSink SetLogSink(LogSink sink) {
  Output& output = TheOutput();
  MutexLock lock(&output.mu);
  return std::exchange(output.sink, std::move(sink));
}

}  // namespace muster::base
