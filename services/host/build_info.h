// SPDX-License-Identifier: Apache-2.0

// What this program was built from.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace muster::host {

absl::string_view BuildVersion();  // "0.1.0"
// The commit, with a "+" where files were changed; "unknown" if it was not built in a clone.
absl::string_view BuildRevision();
// As `--version` prints them: "0.1.0 (4c400d73)", or "0.1.0 (4c400d73, without OpenTelemetry)".
std::string BuildInWords();

}  // namespace muster::host
