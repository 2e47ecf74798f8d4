// What the report keeps of a batch: the groups of its job, with their keys and measures.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace muster::report {

struct MeasureShape {
  std::string name;
  bool is_int = true;  // a whole number of 64 bits; else a decimal of up to 38 digits
  int scale = 0;       // decimals kept; 0 when is_int

  friend bool operator==(const MeasureShape&, const MeasureShape&) = default;
};

struct GroupShape {
  std::string name;
  std::vector<std::string> keys;       // at least one
  std::vector<MeasureShape> measures;  // at least one

  friend bool operator==(const GroupShape&, const GroupShape&) = default;
};

// What must be known of a batch before its items can be counted.
struct BatchShape {
  uint64_t batch = 0;
  std::string job;
  std::string job_revision;
  std::vector<GroupShape> groups;
};

// Keys and measures become columns of one table: a database of people must be able to hold them.
inline constexpr size_t kMaxNameBytes = 64;
inline constexpr size_t kMaxColumns = 64;  // of a group; far below what any SQL store takes
inline constexpr size_t kMaxGroups = 64;   // of a job

// InvalidArgument naming the group and what is wrong with it: a name that is empty, too long, or
// used twice (letter case aside), no key, no measure, a scale out of 0..18.
absl::Status ValidateBatchShape(const BatchShape& shape);

}  // namespace muster::report
