// Small files that are either complete or absent, even if a process or the machine dies while
// writing.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster::scaling::actuator::process {

// Replaces the file `path` by `text`, or creates it. OK: the new content survives a power cut. An
// error: the file has its old or its new content. One writer of a file at a time.
absl::Status WriteStateFile(const std::string& path, absl::string_view text);

// NotFound: the file does not exist. DataLoss: it is longer than kMaxStateFileBytes.
absl::StatusOr<std::string> ReadStateFile(const std::string& path);

}  // namespace muster::scaling::actuator::process
