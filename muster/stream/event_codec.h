// SPDX-License-Identifier: Apache-2.0

// The stored form of an event's content, the same in every engine; format 1.
// docs/storage_format.md shows all formats together.
//
//   +--------+---------+-----------+------------------------------+---------
//   | format | key     | number of | each property, in the order  | body …
//   | 0x01   | 2+n     | them: 2   | of names: name 2+n, value 2+n|
//   +--------+---------+-----------+------------------------------+---------
//
// 2+n: the length, 16 bits, little-endian, and the bytes. The engine keeps offset and time, and
// the checksum that it needs.
// To change the form: give it the next format number, keep reading this one, and add a golden test.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/stream/event_stream_store.h"

namespace muster::stream {

// The content of a valid event (ValidateAppend).
std::string EncodeContent(const NewEvent& event);

// DataLoss, naming `what`, when the bytes are no such content; FailedPrecondition when a newer
// muster wrote them.
absl::StatusOr<NewEvent> DecodeContent(absl::string_view bytes, absl::string_view what);

}  // namespace muster::stream
