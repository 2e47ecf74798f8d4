// Mismatch: something is there, but set otherwise than it must be, and nobody here may change it.
// It is of no use until somebody mends it, and whoever needs it can wait for that.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"

namespace muster::base {

struct Mismatch {
  std::string what;  // its name
  std::string field;
  std::string is;
  std::string wanted;

  friend bool operator==(const Mismatch&, const Mismatch&) = default;
};

// `status` with the mismatch as its cause. OK stays OK.
absl::Status WithMismatch(absl::Status status, const Mismatch& mismatch);
// What WithMismatch added; nullopt for any other status.
std::optional<Mismatch> MismatchOf(const absl::Status& status);

}  // namespace muster::base
