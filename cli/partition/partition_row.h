// SPDX-License-Identifier: Apache-2.0

// PartitionRow: who works on one partition of a group, for people and for programs.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cli/output/format.h"
#include "muster/v1/partition_service.pb.h"
#include "nlohmann/json.hpp"

namespace muster::cli {

struct PartitionRow {
  std::string group;
  v1::PartitionView view;

  static Table Columns();
  // `now` is for "since".
  std::vector<std::string> Cells(absl::Time now) const;
  nlohmann::ordered_json Json() const;
  // What a watch shows again when it changes: everything but the owner's signs of life.
  std::string Watched() const;
};

// "orders/main/3" is partition 3 of group orders/main. InvalidArgument: it ends with no number.
absl::StatusOr<std::pair<std::string, int>> ParsePartition(absl::string_view text);

}  // namespace muster::cli
