// SPDX-License-Identifier: Apache-2.0

// ReleaseView: what a release's status means: who is parked, who left, and how long it took.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "cli/output/format.h"
#include "muster/v1/release_service.pb.h"
#include "nlohmann/json.hpp"

namespace muster::cli {

class ReleaseView {
 public:
  explicit ReleaseView(v1::ReleaseStatus status) : status_(std::move(status)) {}

  int parked() const;
  int left() const;
  // From the release to the last worker's going, of those that were parked at the release; nullopt:
  // none of them has left. The times are of different machines' clocks.
  std::optional<absl::Duration> last_left_after() const;

  // "release black-friday: epoch 2 released 2026-…; 20 left, the last after 12ms; 0 parked".
  std::string Summary() const;
  // The same right after the release, when no worker has told yet that it left: "…; 20 were
  // parked".
  std::string ReleasedSummary() const;
  Table Workers() const;
  nlohmann::ordered_json Json() const;

 private:
  std::string EpochInWords() const;
  // Of a worker that was parked when it was released; nullopt: any other one.
  std::optional<absl::Duration> LeftAfter(const v1::ReleaseWorker& worker) const;

  const v1::ReleaseStatus status_;
};

}  // namespace muster::cli
