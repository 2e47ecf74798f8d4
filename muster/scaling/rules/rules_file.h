// SPDX-License-Identifier: Apache-2.0

// Reads rules files, which are strict YAML. schema/rules.schema.json states the same format for
// editors.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/scaling/rules/rules.h"

namespace muster::scaling::rules {

// The rules that `text` states. InvalidArgument lists every mistake found, one a line in the order
// of the file: "FILE:LINE:COLUMN: what is wrong", where FILE is `file_name`. Without a file name
// the line begins with LINE.
absl::StatusOr<Rules> ParseRules(absl::string_view text, absl::string_view file_name);

// What of `rules` is understood and should be written otherwise, one line each:
// "FILE:LINE:COLUMN: what".
std::vector<std::string> WarningsOf(const Rules& rules, absl::string_view file_name);

// The text of a rules file. NotFound, PermissionDenied, InvalidArgument: the file cannot be read,
// or is longer than kMaxRulesFileBytes.
absl::StatusOr<std::string> ReadRulesText(const std::string& path);

// ReadRulesText and ParseRules; the mistakes name `path` as given.
absl::StatusOr<Rules> LoadRulesFile(const std::string& path);

// The keys that each map of a rules file may have, by the map's place ("", "targets{}",
// "constraints[]", "constraints[].when" …). For the test that holds the JSON Schema against it.
const std::map<std::string, std::vector<std::string>>& RulesFileKeys();

}  // namespace muster::scaling::rules
