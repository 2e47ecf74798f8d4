// SPDX-License-Identifier: Apache-2.0
#include "muster/kubernetes/line_splitter.h"

#include <utility>

#include "muster/base/status.h"

namespace muster::kubernetes {

absl::Status LineSplitter::Take(absl::string_view piece,
                                absl::FunctionRef<absl::Status(absl::string_view line)> on_line) {
  while (!piece.empty()) {
    const size_t end = piece.find('\n');
    const absl::string_view part = piece.substr(0, end);
    if (begun_.size() + part.size() > max_line_bytes_) {
      return absl::UnavailableError("an event is too large");
    }
    begun_.append(part.data(), part.size());
    if (end == absl::string_view::npos) return absl::OkStatus();
    piece.remove_prefix(end + 1);
    const std::string line = std::move(begun_);
    begun_.clear();
    if (!line.empty()) MUSTER_RETURN_IF_ERROR(on_line(line));
  }
  return absl::OkStatus();
}

}  // namespace muster::kubernetes
