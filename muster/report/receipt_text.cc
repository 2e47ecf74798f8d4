#include "muster/report/receipt_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace muster::report {

std::string EscapeName(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"\n", "\\n"}, {"\r", "\\r"}});
}

std::string UnescapeName(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"\\\\", "\\"}, {"\\n", "\n"}, {"\\r", "\r"}});
}

std::string ReceiptTime(absl::Time time) {
  if (time == absl::InfinitePast()) return "never";
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E*SZ", time, absl::UTCTimeZone());
}

std::optional<absl::Time> ParseReceiptTime(absl::string_view text) {
  if (text == "never") return absl::InfinitePast();
  absl::Time time;
  if (!absl::ParseTime(absl::RFC3339_full, text, &time, nullptr)) return std::nullopt;
  return time;
}

std::string VersionLines(const std::map<std::string, int64_t>& items_by_version) {
  std::string lines;
  for (const auto& [version, items] : items_by_version) {
    absl::StrAppend(&lines, "items_by_version ", items, " ", EscapeName(version), "\n");
  }
  return lines;
}

}  // namespace muster::report
