// SPDX-License-Identifier: Apache-2.0

// The options that say where a command works: on a data directory or on a mesh.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cli/output/environment.h"
#include "muster/args/option.h"
#include "muster/base/trace_context.h"
#include "muster/item/labels.h"

namespace muster::cli {

// Adds `--data-dir`, and what names a server instead of it: `--server HOST:PORT` and how to reach
// it. On the command line they exclude each other; MUSTER_SERVER holds where neither is there.
// After the command line is read, options->server.named() tells.
void AddDataDirOrServer(CLI::App* command, CommonOptions* options);

// Adds `--data-dir`, for commands that read the files of a directory themselves. MUSTER_SERVER
// without a named directory is wrong usage: the default one is hardly what such a caller means.
void AddOwnDataDir(CLI::App* command, CommonOptions* options);

// Adds `--controller HOST:PORT`, for commands that ask the report too.
void AddController(CLI::App* command, CommonOptions* options);

// For commands that only services can do: without `--data-dir`.
void AddServer(CLI::App* command, CommonOptions* options);

// The face of a command.
struct VerbFace {
  const char* name;
  const char* about;
  Csv csv = Csv::kNo;
};

// Adds a command to `parent`: it works on a server, prints as --output says, and runs
// `verb(options, environment)`. `Options` has a member `common`.
template <typename Options, typename Verb>
CLI::App* AddServerVerb(CLI::App* parent, const VerbFace& face,
                        const std::shared_ptr<Options>& options, Verb verb,
                        const Environment& environment) {
  CLI::App* const command =
      AddCommand(parent, face.name, face.about, environment,
                 [options, verb, &environment] { return verb(*options, environment); });
  AddServer(command, &options->common);
  AddOutput(command, &options->common, face.csv);
  return command;
}

// InvalidArgument if there is a file at `data_dir`.
absl::Status RequireFolder(const std::string& data_dir);
// NotFound, with how to name a data directory, if there is none at `data_dir`; InvalidArgument as
// RequireFolder. Does not look into an existing directory: opening its stores reports what is
// missing there.
absl::Status RequireDataDir(const std::string& data_dir);

// InvalidArgument, with how to name a server, if none is named.
absl::Status RequireServer(const CommonOptions& options, absl::string_view what);

// Adds `--sla TIME`, 1 ms to 365 days, into `sla`, which outlives the app. `about` is its help.
void AddSla(CLI::App* command, const char* about, std::optional<absl::Duration>* sla);

// What --sla means where work is submitted.
inline constexpr char kSubmittedSla[] =
    "Promise this batch to be done within this time, such as 10m; without it, its job's promise";

// Adds `--label NAME=VALUE`, repeatable, into `labels`, which outlives the app. `about` is its
// help.
void AddLabels(CLI::App* command, const char* about, item::Labels* labels);

// Adds `--request-id`, into `id`, which outlives the app. `about` is its help. An empty one, such
// as of a variable that is not set, is refused: it would be taken for none.
args::Option AddRequestId(CLI::App* command, const char* about, std::string* id);

// The trace that a submission belongs to: the one that the command line names, or the one in which
// muster was started.

// Adds `--traceparent`, into `traceparent`, which outlives the app.
void AddTraceparent(CLI::App* command, std::string* traceparent);

// The trace of `--traceparent`, or else of TRACEPARENT and TRACESTATE in the environment, which
// build servers and shells set for all that they start. A malformed variable is reported and
// ignored: it is hardly meant for muster. nullopt: there is no trace.
std::optional<base::TraceContext> TraceOfCaller(const std::string& traceparent,
                                                const Environment& environment);

}  // namespace muster::cli
