// SPDX-License-Identifier: Apache-2.0

// LineSplitter: makes lines of pieces that end anywhere.
#pragma once

#include <cstddef>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace muster::kubernetes {

// Not thread-safe.
class LineSplitter {
 public:
  explicit LineSplitter(size_t max_line_bytes) : max_line_bytes_(max_line_bytes) {}

  // Hands each line that is whole, and not empty, to `on_line`; stops at its first error.
  // Unavailable: a line is too long.
  absl::Status Take(absl::string_view piece,
                    absl::FunctionRef<absl::Status(absl::string_view line)> on_line);

 private:
  const size_t max_line_bytes_;
  std::string begun_;
};

}  // namespace muster::kubernetes
