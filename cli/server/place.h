// Place: where a command works, on a data directory or on a mesh.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "cli/output/environment.h"

namespace muster::cli {

// Adds `--data-dir`, and what names a server instead of it: `--server HOST:PORT` and how to reach
// it. On the command line they exclude each other; MUSTER_SERVER holds where neither is there.
// After the command line is read, options->server.named() tells.
void AddDataDirOrServer(CLI::App* command, CommonOptions* options);

// Adds `--controller HOST:PORT`, for commands that ask the report too.
void AddController(CLI::App* command, CommonOptions* options);

// For commands that only services can do: without `--data-dir`.
void AddServer(CLI::App* command, CommonOptions* options);

// NotFound saying how to name a data directory, when there is none at `data_dir`. What is missing
// in one that is there, whoever opens it tells.
absl::Status RequireDataDir(const std::string& data_dir);

// InvalidArgument saying how to name a server, when none is named.
absl::Status RequireServer(const CommonOptions& options, absl::string_view what);

}  // namespace muster::cli
