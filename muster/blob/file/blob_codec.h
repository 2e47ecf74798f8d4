// SPDX-License-Identifier: Apache-2.0

// The stored form of a blob; format 1. docs/storage_format.md shows all formats together.
//
//   +--------+-----------------+--------+--------+------------------+-----------
//   | "MBLB" | XXH3-128 of the | format | coding | body size,       | body as
//   |        | blob's name and | 0x01   | 0 raw  | 64 bits,         | coding says
//   |        | what follows    |        | 1 zstd | big-endian       |
//   +--------+-----------------+--------+--------+------------------+-----------
//   0        4                 20       21       22                 30
//
// The checksum is checked before anything is decompressed, and the size before anything is
// allocated. To change the form: give it the next format number, keep magic and checksum where they
// are, keep reading this one, and add a golden test.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster::blob::file {

// The longest file that a blob of kMaxBlobBytes makes.
size_t MaxEncodedBytes();

// `body` has at most kMaxBlobBytes. It is compressed if that makes it smaller.
std::string EncodeBlob(absl::string_view name, absl::string_view body);

// DataLoss, naming the blob, when it is damaged, cut off, or another blob's; FailedPrecondition
// when a newer muster wrote it.
absl::StatusOr<std::string> DecodeBlob(absl::string_view name, absl::string_view file);

}  // namespace muster::blob::file
