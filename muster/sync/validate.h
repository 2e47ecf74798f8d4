// The limits that every OptimisticSyncStore enforces, in one place.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace muster::sync {

// InvalidArgument unless `key` is 1 to kMaxKeyBytes of [A-Za-z0-9._/-].
absl::Status ValidateKey(absl::string_view key);

// InvalidArgument, naming `key`, when `data` is longer than kMaxDataBytes.
absl::Status ValidateData(absl::string_view key, absl::string_view data);

}  // namespace muster::sync
