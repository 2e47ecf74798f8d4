// The limits that every BlobStore enforces, in one place.
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace muster::blob {

// InvalidArgument unless `name` is 1 to kMaxNameBytes of [A-Za-z0-9._-] and does not start with a
// dot. So no name can leave a backend's folder, or hide in it.
absl::Status ValidateBlobName(absl::string_view name);

// InvalidArgument, naming the blob, when `size` is above kMaxBlobBytes.
absl::Status ValidateBlobSize(absl::string_view name, size_t size);

}  // namespace muster::blob
