// Prints how policies fared.
#pragma once

#include <iosfwd>
#include <vector>

#include "cli/output/environment.h"
#include "muster/scaling/replay/replay.h"

namespace muster::cli {

// JSON and YAML: an array of objects, a policy each, with all figures. CSV: the same columns.
// Table: what fits a terminal.
void WriteReplay(const std::vector<scaling::replay::ReplayRow>& rows, OutputFormat format,
                 std::ostream& out);

}  // namespace muster::cli
