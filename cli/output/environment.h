// What every command works with, and how it answers.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "cli/output/exit_code.h"
#include "cli/output/server_options.h"
#include "muster/base/clock.h"
#include "muster/handler/registry.h"

namespace CLI {
class App;
}  // namespace CLI

namespace muster::cli {

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

// Options that many commands share.
struct CommonOptions {
  std::string data_dir = ".muster";
  ServerOptions server;  // where it is named, instead of the data directory (place.h)
  OutputFormat output = OutputFormat::kTable;
};

// Adds `--data-dir DIR`, which MUSTER_DATA_DIR sets too.
void AddDataDir(CLI::App* command, CommonOptions* options);
// How to name the data directory in a line to paste: " --data-dir 'DIR'", or nothing where it is
// the default one.
std::string DataDirOption(const std::string& data_dir);
// Adds `-o, --output` with the formats that the command knows.
enum class Csv { kNo, kYes };
void AddOutput(CLI::App* command, CommonOptions* options, Csv csv);

// Runs `muster` with these arguments, the program's name first, and answers its exit code.
int RunCommandLine(int argc, const char* const* argv, const Environment& environment);

// Each adds its command, or family of commands, to `app`. `environment` outlives the app.
void AddRun(CLI::App* app, const Environment& environment);
void AddReport(CLI::App* app, const Environment& environment);
void AddBatch(CLI::App* app, const Environment& environment);
void AddCost(CLI::App* app, const Environment& environment);
void AddQueue(CLI::App* app, const Environment& environment);
void AddWorker(CLI::App* app, const Environment& environment);
void AddDoctor(CLI::App* app, const Environment& environment);
void AddJob(CLI::App* app, const Environment& environment);
void AddReplay(CLI::App* app, const Environment& environment);
void AddScale(CLI::App* app, const Environment& environment);
void AddUp(CLI::App* app, const Environment& environment);
void AddServeHandler(CLI::App* app, const Environment& environment);
void AddCompletion(CLI::App* app, const Environment& environment);
void AddHelp(CLI::App* app, const Environment& environment);
void AddVersion(CLI::App* app, const Environment& environment);

}  // namespace muster::cli
