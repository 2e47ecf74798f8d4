// muster batch quote
#pragma once

#include <optional>

#include "absl/time/time.h"
#include "cli/output/environment.h"

namespace muster::cli {

// Adds the verb to `batch`. `environment` outlives the app.
void AddQuoteVerb(CLI::App* batch, const Environment& environment);

// "--sla TIME" of a command, into `sla`.
void AddSla(CLI::App* command, std::optional<absl::Duration>* sla);

}  // namespace muster::cli
