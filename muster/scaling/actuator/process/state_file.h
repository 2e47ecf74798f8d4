// Small files that are whole or not there, whenever a process or the machine dies.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster::scaling::actuator::process {

// Puts `text` where the file `path` was, or was not. When it answers OK that survives a power cut;
// upon an error the file is as it was before, or new. One writer of a file at a time.
absl::Status WriteStateFile(const std::string& path, absl::string_view text);

// NotFound; DataLoss: it is longer than kMaxStateFileBytes.
absl::StatusOr<std::string> ReadStateFile(const std::string& path);

}  // namespace muster::scaling::actuator::process
