// SPDX-License-Identifier: Apache-2.0

// The stored form of a sync record; format 1. docs/storage_format.md shows all formats together.
//
//   +--------+---------------------+--------
//   | format | version, big-endian | data …
//   | 0x01   | 64 bits             |
//   +--------+---------------------+--------
//   0        1                     9
//
// muster/rocksdb/checked_value.h puts a checksum in front. The key is the record's, as it is.
// To change the form: give it the next format number, keep reading this one, and add a golden test.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/sync/optimistic_sync_store.h"

namespace muster::sync::rocksdb {

std::string EncodeRecord(absl::string_view data, uint64_t version);

// DataLoss, naming `key`, when the checksum does not match or the record makes no sense;
// FailedPrecondition when a newer muster wrote it.
absl::StatusOr<sync::VersionedData> DecodeRecord(absl::string_view key, absl::string_view value);

}  // namespace muster::sync::rocksdb
