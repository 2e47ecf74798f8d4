// How the lines of a receipt are written: "name value", with "\n" after each.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace muster::report {

// Backslash, line feed and carriage return as \\, \n and \r, and back.
std::string EscapeName(absl::string_view text);
std::string UnescapeName(absl::string_view text);

// RFC 3339, UTC, with as many decimals as there are; "never" for absl::InfinitePast().
std::string ReceiptTime(absl::Time time);
std::optional<absl::Time> ParseReceiptTime(absl::string_view text);

// A line "items_by_version ITEMS VERSION" for each version.
std::string VersionLines(const std::map<std::string, int64_t>& items_by_version);

}  // namespace muster::report
