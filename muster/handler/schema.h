// What a handler may know of its job: the columns that it reads and the groups that it fills.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster::handler {

// Position of a column in Transaction, of a group in JobSchema::groups.
struct Column {
  int index = -1;
};
struct Group {
  int index = -1;
};

struct MeasureSchema {
  enum class Type { kInt, kDecimal };
  std::string name;
  Type type = Type::kInt;
  int scale = 0;  // decimals kept; 0 for kInt. A value that needs more is refused, never rounded.
};

struct GroupSchema {
  std::string name;
  std::vector<std::string> keys;  // at least one
  std::vector<MeasureSchema> measures;
};

struct JobSchema {
  std::string job;
  std::string revision;
  std::vector<std::string> columns;  // the job file's input.columns, in their order
  std::vector<GroupSchema> groups;

  // InvalidArgument naming the missing one and those that there are.
  absl::StatusOr<Column> FindColumn(absl::string_view name) const;
  absl::StatusOr<Group> FindGroup(absl::string_view name) const;
};

}  // namespace muster::handler
