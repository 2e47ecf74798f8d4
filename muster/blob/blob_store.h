// BlobStore: the seam for bodies above the inline limit ("claim check"): the body goes here, its
// name into the message.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster::blob {

// Thread-safe. A Put that answered OK survives what the engine's acknowledgements survive.
class BlobStore {
 public:
  virtual ~BlobStore() = default;

  // Stores `data` under `name` (ValidateBlobName), replacing what was there. Atomic: a reader sees
  // the old, the new, or NotFound, never a part.
  virtual absl::Status Put(absl::string_view name, absl::string_view data) = 0;

  // NotFound; DataLoss (naming the blob) when its bytes are damaged.
  virtual absl::StatusOr<std::string> Get(absl::string_view name) = 0;

  // OK also when there is no such blob, so that deleting twice is safe.
  virtual absl::Status Delete(absl::string_view name) = 0;
};

}  // namespace muster::blob
