// The trace that a submission belongs to: the one that the command line names, or the one in which
// muster was started.
#pragma once

#include <optional>
#include <string>

#include "cli/output/environment.h"
#include "muster/base/trace_context.h"

namespace muster::cli {

// Adds `--traceparent`, into `traceparent`, which outlives the app.
void AddTraceparent(CLI::App* command, std::string* traceparent);

// Of what `--traceparent` said, or else of TRACEPARENT and TRACESTATE in the environment, as build
// servers and shells set them for all that they start. What is malformed there is told of and
// ignored: it is hardly meant for muster. nullopt: there is none.
std::optional<base::TraceContext> TraceOfCaller(const std::string& traceparent,
                                                const Environment& environment);

}  // namespace muster::cli
