// OptimisticSyncStore: the seam of small shared records that change by compare-and-set (req. 54).
// Ids, flags, leases and ownership stand on it.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster::sync {

// What a record's version is before it exists.
inline constexpr uint64_t kAbsent = 0;

struct VersionedData {
  std::string data;
  uint64_t version = kAbsent;  // grows with every write; kAbsent when there is no such record
};

// Thread-safe. A write that answered true survives what the engine's acknowledgements survive.
class OptimisticSyncStore {
 public:
  virtual ~OptimisticSyncStore() = default;

  // {"", kAbsent} when the record does not exist. DataLoss when it is corrupt.
  virtual absl::StatusOr<VersionedData> Get(absl::string_view key) = 0;

  // Writes `data` if the record's version still is `version` (kAbsent: if it does not exist).
  // True: written. False: somebody else was first; read again. Any other trouble is an error, after
  // which the outcome is unknown.
  virtual absl::StatusOr<bool> TryWrite(absl::string_view key, absl::string_view data,
                                        uint64_t version) = 0;
};

}  // namespace muster::sync
