// SPDX-License-Identifier: Apache-2.0

// CheckMembers: finds out that an input of JSON lines has other members than the job asks for,
// before a whole batch is worked on with empty columns. It is to JSON lines what the look at the
// header is to CSV.
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "muster/input/format.h"

namespace muster::input {

// So many records are looked at, within so many bytes.
inline constexpr int kLookedAtRecords = 100;
inline constexpr size_t kLookedAtBytes = size_t{64} << 10;
// Where these hold fewer records: so many of 10 KiB.
inline constexpr size_t kLookedAtWideBytes = size_t{1} << 20;

// `text` is the beginning of the input, or all of it: then `is_all`. InvalidArgument, in words for
// the user: a member that a column needs is in none of the records, and either all of
// kLookedAtRecords were there to look at, or there is a member with a name like it that no column
// takes. Columns that are optional need no member. What is no JSON object does not count: it is
// rejected later, as a record of its own.
absl::Status CheckMembers(const InputFormat& format, absl::string_view text, bool is_all);

}  // namespace muster::input
