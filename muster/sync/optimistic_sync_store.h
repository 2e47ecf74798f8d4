// SPDX-License-Identifier: Apache-2.0

// OptimisticSyncStore: the interface of small shared records that change by compare-and-set (req.
// 54). Ids, flags, leases and ownership are built on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster::sync {

// The version of a record that does not exist.
inline constexpr uint64_t kAbsent = 0;

struct VersionedData {
  std::string data;
  uint64_t version = kAbsent;  // grows with every write; kAbsent when there is no such record
};

// Thread-safe. After true, a write survives what the engine's acknowledgements survive.
class OptimisticSyncStore {
 public:
  virtual ~OptimisticSyncStore() = default;

  // {"", kAbsent} when the record does not exist. DataLoss when it is corrupt.
  virtual absl::StatusOr<VersionedData> Get(absl::string_view key) = 0;

  // Writes `data` if the record's version still is `version` (kAbsent: if it does not exist). True:
  // written. False: another writer was first; read again. Any other failure is an error, after
  // which the outcome is unknown.
  virtual absl::StatusOr<bool> TryWrite(absl::string_view key, absl::string_view data,
                                        uint64_t version) = 0;

  // Removes the record if its version still is `version`. True: removed. False: it has another
  // version, or does not exist. Any other failure is an error, after which the outcome is unknown.
  // A record that is written anew has a higher version than the removed one, unless the engine died
  // in between: its death may also bring the removed record back as it was.
  virtual absl::StatusOr<bool> TryDelete(absl::string_view key, uint64_t version) = 0;
};

// The bounds of sync records, each with its reason.

// Keys name a thing and its owner ("ids/batch"); backends turn them into subjects and file names.
inline constexpr size_t kMaxKeyBytes = 256;

// Records are read and written whole under contention; larger data belongs into a blob.
inline constexpr size_t kMaxDataBytes = size_t{64} << 10;

// InvalidArgument unless `key` is 1 to kMaxKeyBytes of [A-Za-z0-9._/-]. Every OptimisticSyncStore
// enforces this.
absl::Status ValidateKey(absl::string_view key);

// InvalidArgument, naming `key`, when `data` is longer than kMaxDataBytes. Every
// OptimisticSyncStore enforces this.
absl::Status ValidateData(absl::string_view key, absl::string_view data);

}  // namespace muster::sync
