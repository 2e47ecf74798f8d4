// SPDX-License-Identifier: Apache-2.0

// BlobStore: the interface for bodies above the inline limit ("claim check"): the body goes into
// the store, its name into the message.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace muster::blob {

// A blob as a scan finds it.
struct BlobEntry {
  std::string name;
  absl::Time stored;  // by the last Put
};

// One look at the names in a store, page by page, in no particular order. A blob that is put or
// deleted meanwhile may be passed over, or named all the same. Not thread-safe.
class BlobScan {
 public:
  virtual ~BlobScan() = default;

  // The next blobs, up to `max`; none: there are no more.
  virtual absl::StatusOr<std::vector<BlobEntry>> Next(size_t max) = 0;
};

// Thread-safe. After OK, a Put survives what the engine's acknowledgements survive.
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

  // The store outlives the scan. Errors of either are those of Get, but for NotFound.
  virtual absl::StatusOr<std::unique_ptr<BlobScan>> Scan() = 0;
};

// The bounds of blobs, each with its reason.
//
// Less than a file name or an object key may have, with room for a backend's own ending.
inline constexpr size_t kMaxNameBytes = 200;

// Blobs are held in memory whole, once per thread that works on one. It also bounds what a damaged
// or hostile file can make a reader allocate.
inline constexpr size_t kMaxBlobBytes = size_t{256} << 20;

// InvalidArgument unless `name` is 1 to kMaxNameBytes of [A-Za-z0-9._-] and does not start with a
// dot, so that no name can leave a backend's folder, or hide in it. Every BlobStore enforces this.
absl::Status ValidateBlobName(absl::string_view name);

// InvalidArgument, naming the blob, when `size` is above kMaxBlobBytes. Every BlobStore enforces
// this.
absl::Status ValidateBlobSize(absl::string_view name, size_t size);

}  // namespace muster::blob
