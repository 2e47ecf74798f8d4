// The fields of one CSV record.
#pragma once

#include <vector>

#include "absl/strings/string_view.h"

namespace muster::input {

// Appends the fields of `record`, which MeasureCsvRecord found sound, its line end cut off. Fields
// with doubled quotes are written to `*room`, which must have record.size() bytes left and is moved
// on; all others are views into `record`.
void SplitCsvFields(absl::string_view record, char delimiter, char** room,
                    std::vector<absl::string_view>* fields);

}  // namespace muster::input
