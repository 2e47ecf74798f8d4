#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cli/main.h"
#include "cli/misuse.h"
#include "cli/output/environment.h"
#include "cli/output/table.h"
#include "muster/base/clock.h"

namespace muster::cli {
namespace {

constexpr char kAbout[] =
    "muster: an elastic work-queue mesh. Splits bursts of transactions into durable work items,\n"
    "runs your code on them and adds the results up exactly once.";

constexpr char kFooter[] =
    "Exit codes: 0 done, 1 error, 2 usage, 3 transactions rejected or dead-lettered,\n"
    "            4 later than promised, 5 busy, full or not reachable, 6 damage found,\n"
    "            124 waited long enough, 130 interrupted";

// A word that is not known is often a slip for the one that is missed.
bool IsOfWords(const CLI::ParseError& error) {
  const auto code = static_cast<CLI::ExitCodes>(error.get_exit_code());
  return code == CLI::ExitCodes::RequiredError || code == CLI::ExitCodes::ExtrasError;
}

// CLI11 has codes of its own for each mistake; ours are 0 for help and 2 for usage.
int AnswerParseError(const CLI::App& app, const CLI::ParseError& error,
                     const Environment& environment) {
  if (error.get_exit_code() == 0) {
    app.exit(error, *environment.out, *environment.err);
    return kOk;
  }
  const std::string unknown = IsOfWords(error) ? ExplainUnknownWord(app) : "";
  *environment.err << (unknown.empty() ? ExplainParseError(app, error) : unknown);
  return kUsage;
}

// Of errno nothing is left by the time that a command has ended.
bool ReaderHasLeft() {
  pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
  return poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
}

// A report that was cut off must not look like a whole one. A reader that has seen enough and left
// is no error.
int CheckWritten(int exit_code) {
  std::cout.flush();
  if (std::cout.good() || ReaderHasLeft()) return exit_code;
  std::cerr << "muster: the output could not be written\n";
  return exit_code == kOk ? kError : exit_code;
}

// What MUSTER_OUTPUT asks for, where the command can do it.
OutputFormat DefaultFormat(const std::map<std::string, OutputFormat>& formats) {
  const char* const wanted = std::getenv("MUSTER_OUTPUT");  // NOLINT(concurrency-mt-unsafe): alone
  const auto format = formats.find(wanted == nullptr ? "" : wanted);
  return format == formats.end() ? OutputFormat::kTable : format->second;
}

}  // namespace

void Environment::Fail(const absl::Status& status) const {
  // The mistakes of a file come one a line.
  const auto append = [](std::string* text, absl::string_view line) {
    text->append(Printable(line));
  };
  *err << "muster: " << absl::StrJoin(absl::StrSplit(status.message(), '\n'), "\n", append)
       << std::endl;
  exit_code = ExitCodeOf(status);
}

void AddDataDir(CLI::App* command, CommonOptions* options) {
  command->add_option("--data-dir", options->data_dir, "Where queue, ledger and report live")
      ->envname("MUSTER_DATA_DIR")
      ->capture_default_str();
}

std::string DataDirOption(const std::string& data_dir) {
  return data_dir == CommonOptions().data_dir ? "" : absl::StrCat(" --data-dir '", data_dir, "'");
}

void AddOutput(CLI::App* command, CommonOptions* options, Csv csv) {
  std::map<std::string, OutputFormat> formats = {{"table", OutputFormat::kTable},
                                                 {"json", OutputFormat::kJson},
                                                 {"yaml", OutputFormat::kYaml}};
  if (csv == Csv::kYes) formats["csv"] = OutputFormat::kCsv;
  const std::string names = csv == Csv::kYes ? "table, json, yaml or csv" : "table, json or yaml";
  options->output = DefaultFormat(formats);
  command
      ->add_option("-o,--output", options->output,
                   "What to print it as; MUSTER_OUTPUT sets the default")
      ->transform(CLI::Validator(
          [formats, names](std::string& text) -> std::string {
            const auto format = formats.find(text);
            if (format == formats.end()) return absl::StrCat("'", text, "' is not ", names);
            text = absl::StrCat(static_cast<int>(format->second));
            return "";
          },
          csv == Csv::kYes ? "{table,json,yaml,csv}" : "{table,json,yaml}"));
}

int RunCommandLine(int argc, const char* const* argv, const Environment& environment) {
  CLI::App app(kAbout, "muster");
  app.footer(kFooter);
  app.set_version_flag("--version", "muster " MUSTER_VERSION);
  app.require_subcommand(1);
  AddRun(&app, environment);
  AddReport(&app, environment);
  AddBatch(&app, environment);
  AddQueue(&app, environment);
  AddCost(&app, environment);
  AddJob(&app, environment);
  AddScale(&app, environment);
  AddReplay(&app, environment);
  AddWorker(&app, environment);
  AddDoctor(&app, environment);
  AddUp(&app, environment);
  AddServeHandler(&app, environment);
  AddCompletion(&app, environment);
  AddHelp(&app, environment);
  AddVersion(&app, environment);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return AnswerParseError(app, error, environment);
  }
  return environment.exit_code;
}

int Main(int argc, char** argv, const handler::HandlerRegistry& handlers) {
  // A reader that closes its end early (`muster report 1 | head`) is no reason to die.
  std::signal(SIGPIPE, SIG_IGN);
  Environment environment;
  environment.handlers = &handlers;
  environment.clock = base::RealClock();
  environment.out = &std::cout;
  environment.err = &std::cerr;
  environment.err_is_terminal = isatty(STDERR_FILENO) == 1;
  return CheckWritten(RunCommandLine(argc, argv, environment));
}

}  // namespace muster::cli
