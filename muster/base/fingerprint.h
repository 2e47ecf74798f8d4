// SPDX-License-Identifier: Apache-2.0

// Fingerprints of bytes. Fingerprint (XXH3, 128 bits) is fast and finds accidental damage and
// duplicates; it does not resist collisions that are built on purpose. Sha256 does, and so
// identifies contents for good.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace muster::base {

struct Fingerprint128 {
  uint64_t high = 0;
  uint64_t low = 0;

  // 32 lower-case hex digits, high half first.
  std::string ToHex() const;
  // nullopt unless `hex` is 32 hex digits.
  static std::optional<Fingerprint128> FromHex(absl::string_view hex);

  // 16 bytes, big-endian, high half first: how stored forms hold it.
  std::string ToBytes() const;
  // nullopt unless there are 16 bytes.
  static std::optional<Fingerprint128> FromBytes(absl::string_view bytes);

  friend auto operator<=>(const Fingerprint128&, const Fingerprint128&) = default;
};

// Stable across versions and machines.
Fingerprint128 Fingerprint(absl::string_view bytes);

// Fingerprint of bytes that come in pieces; how they are cut makes no difference. Not thread-safe.
class Fingerprinter {
 public:
  Fingerprinter();
  ~Fingerprinter();
  Fingerprinter(Fingerprinter&&) noexcept;
  Fingerprinter& operator=(Fingerprinter&&) noexcept;

  void Update(absl::string_view bytes);
  // Of all bytes so far; more may follow.
  Fingerprint128 Digest() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// 64 lower-case hex digits.
std::string Sha256Hex(absl::string_view bytes);

// SHA-256 of bytes that come in pieces. Not thread-safe.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void Update(absl::string_view bytes);
  // Of all bytes so far; more may follow.
  std::string HexDigest() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace muster::base
