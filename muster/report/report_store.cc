// SPDX-License-Identifier: Apache-2.0
#include "muster/report/report_store.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/status.h"

namespace muster::report {
namespace {

absl::StatusOr<std::vector<GroupShape>> Select(ReportReader& reader, uint64_t batch,
                                               absl::string_view wanted) {
  MUSTER_ASSIGN_OR_RETURN(std::vector<GroupShape> groups, reader.Groups(batch));
  if (wanted.empty()) return groups;
  std::vector<std::string> names;
  for (GroupShape& group : groups) {
    if (group.name == wanted) return std::vector<GroupShape>{std::move(group)};
    names.push_back(group.name);
  }
  return absl::NotFoundError(absl::StrCat("batch ", batch, " has no group '", wanted, "'; it has ",
                                          absl::StrJoin(names, ", ")));
}

}  // namespace

absl::Status VisitRows(ReportReader& reader, uint64_t batch, absl::string_view group,
                       const RowVisitor& visitor) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<GroupShape> groups, Select(reader, batch, group));
  for (const GroupShape& shape : groups) {
    MUSTER_RETURN_IF_ERROR(visitor.on_group(shape));
    MUSTER_RETURN_IF_ERROR(reader.ForEachRow(batch, shape.name, visitor.on_row));
  }
  return absl::OkStatus();
}

}  // namespace muster::report
