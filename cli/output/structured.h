// What programs read of a command: one JSON object or array, as JSON or as YAML.
#pragma once

#include <string>

#include "cli/output/environment.h"
#include "nlohmann/json_fwd.hpp"

namespace muster::cli {

// JSON or YAML, and no table.
bool IsStructured(OutputFormat format);

// JSON: on one line. YAML: one document, that any reader takes for the same: a string that could be
// read as something else is quoted. Both end their last line; bytes that are no UTF-8 are replaced.
std::string Structured(const nlohmann::ordered_json& json, OutputFormat format);
void PrintStructured(const nlohmann::ordered_json& json, OutputFormat format,
                     const Environment& environment);

// One item of a YAML sequence, each line behind so many spaces: for what is written bit by bit.
std::string YamlItem(const nlohmann::ordered_json& json, int indent);
// A key, or a value of one line.
std::string YamlScalar(const nlohmann::ordered_json& json);

}  // namespace muster::cli
