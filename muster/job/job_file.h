// Reads job files: YAML, strictly. schema/job.schema.json says the same to editors.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/job/job.h"

namespace muster::job {

// The job that `text` defines. InvalidArgument lists every mistake found, one a line in the order
// of the file: "FILE:LINE:COLUMN: what is wrong", where FILE is `file_name`.
absl::StatusOr<JobDefinition> ParseJob(absl::string_view text, absl::string_view file_name);

// The same for a file; the mistakes carry `path` as it is given. NotFound, PermissionDenied,
// InvalidArgument: the file cannot be read.
absl::StatusOr<JobDefinition> LoadJobFile(const std::string& path);

// The keys that each map of a job file may have, by the map's place ("", "input", "groups[]" …).
// For documentation and for the test that holds the JSON Schema against it.
const std::map<std::string, std::vector<std::string>>& JobFileKeys();

}  // namespace muster::job
