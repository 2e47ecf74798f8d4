// SPDX-License-Identifier: Apache-2.0

// Environment: the exit codes of `muster`, and what every command works with.
#pragma once

#include <functional>
#include <iosfwd>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/status.h"
#include "muster/handler/handler.h"

namespace CLI {
class App;
}  // namespace CLI

namespace muster::cli {

enum ExitCode : int {
  kOk = 0,
  kError = 1,
  kUsage = 2,
  kPartial = 3,         // the batch is done, but transactions were rejected or dead-lettered
  kDeadlineMissed = 4,  // done, or it would be, later than promised
  kUnreachable = 5,     // what the command needs is busy, full or does not answer; try again later
  kDamaged = 6,         // stored data are damaged: muster check --repair
  kTimedOut = 124,      // the batch goes on, but the command's timeout is over
  kInterrupted = 130,   // Ctrl-C or SIGTERM
};

// The code for a command that ended with `status`.
inline ExitCode ExitCodeOf(const absl::Status& status) {
  if (status.ok()) return kOk;
  if (absl::IsCancelled(status)) return kInterrupted;
  if (absl::IsDataLoss(status)) return kDamaged;
  if (base::IsBusy(status) || absl::IsUnavailable(status) || absl::IsResourceExhausted(status) ||
      absl::IsDeadlineExceeded(status)) {
    return kUnreachable;
  }
  return kError;
}

// ServerOptions: the services that a command works with, and how to reach them.

struct ServerOptions {
  std::string address;     // of an initiator; empty: none, commands work on a data directory
  std::string controller;  // empty: the one that the initiator knows
  std::string tls_roots;
  std::string tls_certificate;
  std::string tls_key;
  // What a call may take; nullopt: rpc::kDefaultCallTimeout, and more for a report.
  std::optional<absl::Duration> timeout;

  bool named() const { return !address.empty(); }
};

// The streams, clock and handlers of every command.

enum class OutputFormat { kTable, kJson, kYaml, kCsv };

struct Environment {
  const handler::HandlerRegistry* handlers = nullptr;  // not owned
  base::Clock* clock = nullptr;                        // not owned
  std::ostream* out = nullptr;                         // reports; not owned
  std::ostream* err = nullptr;                         // progress and complaints; not owned
  bool err_is_terminal = false;

  // Set by the command that ran.
  mutable int exit_code = kOk;

  // Prints "muster: message" to err, and remembers the exit code that `status` stands for.
  void Fail(const absl::Status& status) const;
};

// Adds the command `name` to `parent`. When the command line names it, it calls `run`, and hands
// its error to `environment.Fail`; `environment` outlives the app.
CLI::App* AddCommand(CLI::App* parent, const std::string& name, const std::string& about,
                     const Environment& environment, std::function<absl::Status()> run);

// Options that many commands share.

// The environment variable that names the server, where no option does (cli/server/options.h).
inline constexpr char kServerVariable[] = "MUSTER_SERVER";

struct CommonOptions {
  std::string data_dir = ".muster";
  ServerOptions server;  // used instead of the data directory if it is named (cli/server/options.h)
  OutputFormat output = OutputFormat::kTable;
};

// Adds `--data-dir DIR`, which MUSTER_DATA_DIR sets too.
void AddDataDir(CLI::App* command, CommonOptions* options);
// The option for a command line to paste: " --data-dir 'DIR'", or "" for the default directory,
// unless MUSTER_SERVER names another place for who pastes it.
std::string DataDirOption(const std::string& data_dir);
// Adds `-o, --output` with the formats that the command knows.
enum class Csv { kNo, kYes };
void AddOutput(CLI::App* command, CommonOptions* options, Csv csv = Csv::kNo);

// Hints: what the message about a missing name suggests to do.

// If `status` is a NotFound without a hint, appends a hint that names `command`, which lists the
// existing names, and keeps code and payloads. Answers any other status as it is.
absl::Status WithListHint(const absl::Status& status, absl::string_view command);
// The same, and the hint's command names the data directory, if the command works on one.
absl::Status WithListHint(const absl::Status& status, absl::string_view command,
                          const CommonOptions& options);

}  // namespace muster::cli
