// SPDX-License-Identifier: Apache-2.0

// Names that every queue and blob backend accepts, made from any text.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"

namespace muster::base {

inline constexpr size_t kMinSafeNameBytes = 3;
inline constexpr size_t kMaxSafeNameBytes = 63;

// 3 to 63 of [a-z0-9-], no dash at either end, no two dashes in a row.
bool IsSafeName(absl::string_view name);

// `text` itself if it is safe. Otherwise a safe name that resembles it and ends in a dash and 12
// hex digits of its SHA-256, so that "Orders" and "orders!" stay two names. Stable across versions:
// stored data is found by it.
std::string MakeSafeName(absl::string_view text);

// The name of a partition of `name`, for instance "retail-in-3" of "retail-in": a safe one, also
// where `name` is not.
std::string PartitionName(absl::string_view name, int64_t partition);

// The safe names of all texts that begin with `start` begin with the result, which may be empty.
std::string SafeStart(absl::string_view start);

// What `name` resembles, if MakeSafeName appended a hash to it and cut nothing off to make room; ""
// otherwise.
absl::string_view BeforeHash(absl::string_view name);

// A letter or digit of ASCII, or one of ._-: what names consist of that only muster reads.
inline bool IsNameCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-';
}

// MakeInstanceId names a role instance: as the owner of leases, the sender of events, a field of
// logs.

// "processor-myhost-4711-9f3a2c1b": role, host, process id and a random part, so that two instances
// never share one, even after a restart with the same process id. Only [a-z0-9-]: it goes into
// subjects and keys.
std::string MakeInstanceId(absl::string_view role);

}  // namespace muster::base
