// Reads the text of a file into its one YAML document.
#pragma once

#include <yaml-cpp/yaml.h>

#include <cstddef>

#include "absl/strings/string_view.h"
#include "muster/yaml/problems.h"

namespace muster::yaml {

// The document. A problem and an empty node: more than `max_bytes`, not UTF-8, not YAML, several
// documents, none. Never throws.
YAML::Node ReadDocument(absl::string_view text, size_t max_bytes, Problems* problems);

}  // namespace muster::yaml
