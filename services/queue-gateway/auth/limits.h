// SPDX-License-Identifier: Apache-2.0

// Every bound of authentication, with its reason.
#pragma once

#include <cstddef>

#include "absl/time/time.h"

namespace muster::queue_gateway::auth {

// How far the date of a request may be from now, both ways: what was overheard is of no use later.
inline constexpr absl::Duration kReplayWindow = absl::Minutes(15);

// A key has 256 bits in the first version of the service, and 512 today. A shorter one can be
// guessed.
inline constexpr size_t kMinKeyBytes = 32;
inline constexpr size_t kMaxKeyBytes = 256;

// A token of an identity provider has two or three KiB; one with many groups, eight.
inline constexpr size_t kMaxAuthorizationBytes = 16'384;
// What the strings to sign in an error repeat of a request; an error body should stay small.
inline constexpr size_t kMaxDetailBytes = 4096;

// Files of accounts and of keys: thousands of entries.
inline constexpr size_t kMaxFileBytes = 1 << 20;
// How late a changed file is noticed.
inline constexpr absl::Duration kFileRefresh = absl::Seconds(1);

// The keys of a key set; a token without a key id is tried on each of its kind.
inline constexpr size_t kMaxJwksKeys = 64;
// RSA keys below this are too weak to trust.
inline constexpr int kMinRsaBits = 2048;
// A larger one would only take time.
inline constexpr int kMaxRsaBits = 16'384;

}  // namespace muster::queue_gateway::auth
