// SPDX-License-Identifier: Apache-2.0

// Reads job files: YAML, strictly. schema/job.schema.json says the same to editors.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/job/job.h"
#include "muster/yaml/problems.h"

namespace muster::job {

// The job that `text` defines. InvalidArgument lists every mistake found, one a line in the order
// of the file: "FILE:LINE:COLUMN: what is wrong", where FILE is `file_name`. Without a file name
// the line begins with LINE.
absl::StatusOr<JobDefinition> ParseJob(absl::string_view text, absl::string_view file_name);

// The same, but the mistakes come one by one, in the order of the file and at most
// yaml::kMaxProblems.
// `*job` is what `text` defines when there are none.
std::vector<yaml::Problem> CheckJob(absl::string_view text, JobDefinition* job);

// The text of a job file. NotFound, PermissionDenied, InvalidArgument: it cannot be read, or is
// longer than a job file may be.
absl::StatusOr<std::string> ReadJobText(const std::string& path);

// ReadJobText and ParseJob; the mistakes carry `path` as it is given.
absl::StatusOr<JobDefinition> LoadJobFile(const std::string& path);

// The keys that each map of a job file may have, by the map's place ("", "input", "groups[]" …).
// For documentation and for the test that holds the JSON Schema against it.
const std::map<std::string, std::vector<std::string>>& JobFileKeys();

}  // namespace muster::job
