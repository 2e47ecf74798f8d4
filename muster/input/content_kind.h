// SPDX-License-Identifier: Apache-2.0

// CheckContentKind: finds out that an input is not what its job says before a batch of it begins: a
// compressed file, a workbook, text in another encoding, one JSON array instead of JSON lines, JSON
// lines without the members of the job (json_members.h). Each is told by its name, with what to do.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "muster/input/byte_source.h"
#include "muster/input/format.h"

namespace muster::input {

// InvalidArgument, in words for the user: no batch is to be made of `source`. Looks at the first
// kLookedAtBytes (json_members.h), of wide JSON lines at kLookedAtWideBytes, and, of a source that
// has stopped growing, at the last bytes. Only what is certain is refused: a single record that
// cannot be read is rejected later by itself. HasNotArrived: what is looked at is not all there
// yet.
//
// For content of new batches only: an older muster may have begun a batch of what is refused here,
// and it goes on as it began.
absl::Status CheckContentKind(const ByteSource& source, const InputFormat& format);

// What CheckContentKind and ReadHeader (slice_reader.h) share.

inline constexpr absl::string_view kUtf8Mark = "\xEF\xBB\xBF";
inline constexpr size_t kMaxMarkBytes = 4;

// InvalidArgument: `text`, the beginning of an input, has the byte order mark of another encoding.
absl::Status CheckMark(absl::string_view text);

// InvalidArgument: lines end with CR alone, or, if `doubled`, with CR CR LF.
absl::Status LineEndError(bool doubled);

// To be added to "… is not UTF-8": the command that converts `text`, if it is Latin-1 or like it.
std::string EncodingHint(absl::string_view text);

}  // namespace muster::input
