// The shop's times: "2010-12-01 08:26:00".
#pragma once

#include "absl/strings/string_view.h"

namespace retail {

// Whether `text` is a time of day of a date that the calendar has, written exactly so.
bool IsTimestamp(absl::string_view text);

// "2010-12" of a text that IsTimestamp.
inline absl::string_view MonthOf(absl::string_view timestamp) { return timestamp.substr(0, 7); }

}  // namespace retail
