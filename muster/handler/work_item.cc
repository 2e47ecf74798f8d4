// SPDX-License-Identifier: Apache-2.0
#include "muster/handler/work_item.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace muster::handler {

namespace {

absl::Status Missing(const JobSchema& schema, absl::string_view what, absl::string_view name,
                     absl::string_view known) {
  return absl::InvalidArgumentError(absl::StrCat("job '", schema.job, "' has no ", what, " '", name,
                                                 "'; it has: ", known.empty() ? "none" : known));
}

}  // namespace

absl::StatusOr<Column> JobSchema::FindColumn(absl::string_view name) const {
  const auto found = std::find(columns.begin(), columns.end(), name);
  if (found != columns.end()) return Column{static_cast<int>(found - columns.begin())};
  return Missing(*this, "column", name, absl::StrJoin(columns, ", "));
}

absl::StatusOr<Group> JobSchema::FindGroup(absl::string_view name) const {
  const auto found = std::find_if(groups.begin(), groups.end(),
                                  [&](const GroupSchema& group) { return group.name == name; });
  if (found != groups.end()) return Group{static_cast<int>(found - groups.begin())};
  const auto append_name = [](std::string* out, const GroupSchema& group) {
    absl::StrAppend(out, group.name);
  };
  return Missing(*this, "group", name, absl::StrJoin(groups, ", ", append_name));
}

std::string WorkItem::id() const {
  std::string id = absl::StrCat(context_.batch, "/", context_.index);
  if (context_.only_line.has_value()) absl::StrAppend(&id, ":", *context_.only_line);
  return id;
}

}  // namespace muster::handler
