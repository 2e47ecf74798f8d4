#include <unistd.h>

#include <csignal>
#include <iostream>
#include <map>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "cli/environment.h"
#include "cli/main.h"
#include "cli/stop_signals.h"
#include "cli/table.h"
#include "muster/base/clock.h"

namespace muster::cli {
namespace {

constexpr char kAbout[] =
    "muster: an elastic work-queue mesh. Splits bursts of transactions into durable work items,\n"
    "runs your code on them and adds the results up exactly once.";

constexpr char kFooter[] =
    "Exit codes: 0 done, 1 error, 2 usage, 3 transactions rejected or dead-lettered,\n"
    "            4 later than the job's sla, 5 unreachable, 124 timed out, 130 interrupted";

// CLI11 has codes of its own for each mistake; ours are 0 for help and 2 for usage.
int AnswerParseError(const CLI::App& app, const CLI::ParseError& error) {
  return app.exit(error, std::cout, std::cerr) == 0 ? kOk : kUsage;
}

}  // namespace

void Environment::Fail(const absl::Status& status) const {
  *err << "muster: " << std::string(status.message()) << std::endl;
  exit_code = ExitCodeOf(status);
}

void AddDataDir(CLI::App* command, CommonOptions* options) {
  command->add_option("--data-dir", options->data_dir, "Where queue, ledger and report live")
      ->envname("MUSTER_DATA_DIR")
      ->capture_default_str();
}

void AddOutput(CLI::App* command, CommonOptions* options, Csv csv) {
  std::map<std::string, OutputFormat> formats = {{"table", OutputFormat::kTable},
                                                 {"json", OutputFormat::kJson}};
  if (csv == Csv::kYes) formats["csv"] = OutputFormat::kCsv;
  command
      ->add_option("-o,--output", options->output,
                   csv == Csv::kYes ? "table, json or csv" : "table or json")
      ->transform(CLI::CheckedTransformer(formats).description(""))
      ->envname("MUSTER_OUTPUT");
}

int Main(int argc, char** argv, const handler::HandlerRegistry& handlers) {
  // A reader that closes its end early (`muster report 1 | head`) is no reason to die.
  std::signal(SIGPIPE, SIG_IGN);
  const StopSignals signals;
  Environment environment;
  environment.handlers = &handlers;
  environment.clock = base::RealClock();
  environment.stop = signals.token();
  environment.out = &std::cout;
  environment.err = &std::cerr;
  environment.err_is_terminal = isatty(STDERR_FILENO) == 1;

  CLI::App app(kAbout, "muster");
  app.footer(kFooter);
  app.require_subcommand(1);
  AddRun(&app, environment);
  AddReport(&app, environment);
  AddBatch(&app, environment);
  AddQueue(&app, environment);
  AddJob(&app, environment);
  AddVersion(&app, environment);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return AnswerParseError(app, error);
  }
  std::cout.flush();
  return environment.exit_code;
}

}  // namespace muster::cli
