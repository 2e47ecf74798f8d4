// SPDX-License-Identifier: Apache-2.0

// Environment: what every command works with, and the options that many commands share.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "cli/output/exit_code.h"
#include "cli/output/server_options.h"
#include "muster/base/clock.h"
#include "muster/handler/handler.h"

namespace CLI {
class App;
}  // namespace CLI

namespace muster::cli {

enum class OutputFormat { kTable, kJson, kYaml, kCsv };

// The streams, clock and handlers of every command.
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
// How a batch of a data directory that no process works on is given up: completes "to give it up,".
std::string HowToGiveUp(uint64_t batch, const std::string& data_dir);
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
