// SPDX-License-Identifier: Apache-2.0
#include "cli/app.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "cli/batch/commands.h"
#include "cli/doctor/commands.h"
#include "cli/main.h"
#include "cli/output/environment.h"
#include "cli/output/format.h"
#include "cli/partition/commands.h"
#include "cli/queue/commands.h"
#include "cli/release/commands.h"
#include "cli/run/commands.h"
#include "cli/scale/commands.h"
#include "cli/schedule/commands.h"
#include "cli/stream/commands.h"
#include "cli/worker/commands.h"
#include "muster/base/clock.h"
#include "muster/base/log.h"
#include "muster/base/text.h"
#include "muster/os/process_limits.h"
#include "muster/os/process_start.h"
#include "services/controller/program.h"
#include "services/host/build_info.h"
#include "services/host/host_options.h"
#include "services/host/numbers.h"
#include "services/host/parse_error.h"
#include "services/host/unknown_variables.h"
#include "services/initiator/program.h"
#include "services/processor/program.h"

namespace muster::cli {

namespace {

// The outermost of the commands that were given a word that they do not take; nullptr: none was.
const CLI::App* FindUnparsed(const CLI::App& app) {
  if (app.remaining_size() > 0) return &app;
  for (const CLI::App* const command : app.get_subcommands()) {
    if (const CLI::App* const found = FindUnparsed(*command); found != nullptr) return found;
  }
  return nullptr;
}

std::string FirstUnknownWord(const CLI::App& app) {
  for (const std::string& word : app.remaining()) {
    if (word != "--") return word;  // it only ends the options
  }
  return "";
}

// "batch get"; empty for the program itself.
std::string NameBelow(const CLI::App& app) {
  const CLI::App* const parent = app.get_parent();
  if (parent == nullptr) return "";
  const std::string above = NameBelow(*parent);
  return absl::StrCat(above, above.empty() ? "" : " ", app.get_name());
}

std::string ItHas(const CLI::App& app) {
  const std::string name = NameBelow(app);
  return name.empty() ? "there is" : absl::StrCat(name, " has");
}

std::vector<std::string> CommandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* const command : app.get_subcommands([](const CLI::App*) { return true; })) {
    const bool is_option_group = command->get_name().empty();
    const bool is_for_people = !command->get_group().empty();
    if (!is_option_group && is_for_people) names.push_back(command->get_name());
  }
  return names;
}

std::vector<std::string> OptionNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* const option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back(absl::StrCat("--", name));
  }
  return names;
}

// The commands of that name which the families of `app` have: "batch submit".
std::vector<std::string> CommandsOfFamilies(const CLI::App& app, const std::string& word) {
  std::vector<std::string> found;
  for (const std::string& family : CommandNames(app)) {
    const std::vector<std::string> names = CommandNames(*app.get_subcommand(family));
    if (std::find(names.begin(), names.end(), word) == names.end()) continue;
    found.push_back(absl::StrCat(family, " ", word));
  }
  return found;
}

std::string ExplainCommand(const CLI::App& app, const std::string& word) {
  const std::vector<std::string> found = CommandsOfFamilies(app, word);
  if (!found.empty()) {
    return absl::StrCat(ItHas(app), " no command ", base::Quoted(word),
                        found.size() == 1 ? "; did you mean " : "; there are ",
                        base::ListNames(found), found.size() == 1 ? "?" : "");
  }
  const std::vector<std::string> names = CommandNames(app);
  const std::string meant = base::DidYouMean(word, names);
  return absl::StrCat(
      ItHas(app), " no command ", base::Quoted(word),
      meant.empty() ? absl::StrCat("; the commands are ", base::ListNames(names)) : meant);
}

std::string ExplainOption(const CLI::App& app, const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  const std::string meant = base::DidYouMean(name, OptionNames(app));
  const bool has_commands = !CommandNames(app).empty();
  return absl::StrCat(
      ItHas(app), " no option ", base::Quoted(name),
      meant.empty() && has_commands ? "; the options of a command come after its name" : meant);
}

std::string Explain(const CLI::App& app, const std::string& word) {
  if (absl::StartsWith(word, "-")) return ExplainOption(app, word);
  if (!CommandNames(app).empty()) return ExplainCommand(app, word);
  return absl::StrCat(NameBelow(app), ": ", base::Quoted(word), " is one argument too many");
}

// The command that was being read when reading ended.
const CLI::App& Innermost(const CLI::App& app) {
  for (const CLI::App* const command : app.get_subcommands()) {
    const bool is_option_group = command->get_name().empty();
    if (!is_option_group) return Innermost(*command);
  }
  return app;
}

// CLI11 begins some of its messages as sentences, and others with a name.
std::string Uncapitalized(std::string text) {
  if (text.size() > 1 && absl::ascii_islower(text[1])) text[0] = absl::ascii_tolower(text[0]);
  return text;
}

std::string WhatIsWrong(const CLI::App& command, const CLI::ParseError& mistake,
                        absl::Span<const char* const> words) {
  const std::vector<std::string> names = CommandNames(command);
  const bool is_missing =
      mistake.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiredError);
  if (is_missing && !names.empty()) {
    return absl::StrCat("a command is required; the commands are ", base::ListNames(names));
  }
  return Uncapitalized(Printable(host::WithVariable(command, mistake, words)));
}

// As every complaint is: what is wrong, and where to read on.
std::string Complaint(const CLI::App& command, const std::string& what) {
  const std::string name = NameBelow(command);
  return absl::StrCat("muster: ", what, "\nmuster ", name, name.empty() ? "" : " ",
                      "--help tells more\n");
}

// Of a word that `app`, a command or the program, does not take. Two lines.
std::string ExplainUnknownArgument(const CLI::App& app, const std::string& word) {
  return Complaint(app, Explain(app, word));
}

// Names the first word of a parsed command line that no command takes, and what may have been meant
// by it. Two lines; empty where every word was taken.
std::string ExplainUnknownWord(const CLI::App& app) {
  const CLI::App* const unparsed = FindUnparsed(app);
  if (unparsed == nullptr) return "";
  return ExplainUnknownArgument(*unparsed, FirstUnknownWord(*unparsed));
}

// Of a parsed command line of known words: what is missing or malformed, and in which command. Two
// lines.
std::string ExplainParseError(const CLI::App& app, const CLI::ParseError& mistake,
                              absl::Span<const char* const> words) {
  const CLI::App& command = Innermost(app);
  const std::string name = NameBelow(command);
  return Complaint(
      command, absl::StrCat(name, name.empty() ? "" : ": ", WhatIsWrong(command, mistake, words)));
}

// muster help [COMMAND…]

// nullptr: there is none.
const CLI::App* CommandBelow(const CLI::App& app, const std::string& name) {
  const auto commands =
      app.get_subcommands([&name](const CLI::App* command) { return command->get_name() == name; });
  return name.empty() || commands.empty() ? nullptr : commands.front();
}

void PrintHelp(const CLI::App& app, const std::vector<std::string>& words,
               const Environment& environment) {
  const CLI::App* command = &app;
  std::string name = app.get_name();
  for (const std::string& word : words) {
    const CLI::App* const below = CommandBelow(*command, word);
    if (below == nullptr) {
      *environment.err << ExplainUnknownArgument(*command, word);
      environment.exit_code = kUsage;
      return;
    }
    command = below;
    absl::StrAppend(&name, " ", word);
  }
  // App::help would tell of the command that was given, which is this one.
  *environment.out << command->get_formatter()->make_help(command, name,
                                                          CLI::AppFormatMode::Normal);
}

}  // namespace

void AddHelp(CLI::App* app, const Environment& environment) {
  CLI::App* const help = app->add_subcommand("help", "Say what a command does, as --help does");
  const auto words = std::make_shared<std::vector<std::string>>();
  help->add_option("COMMAND", *words, "Such as batch submit; without it, all of muster");
  help->callback([app, words, &environment] { PrintHelp(*app, *words, environment); });
}

// muster version

void AddVersion(CLI::App* app, const Environment& environment) {
  app->add_subcommand("version", "Print the version")->callback([&environment] {
    *environment.out << "muster " << host::BuildInWords() << "\n";
  });
}

namespace {

constexpr char kAbout[] =
    "muster: an elastic work-queue mesh. Splits bursts of transactions into durable work items,\n"
    "runs your code on them and adds the results up exactly once.";

constexpr char kFooter[] =
    "Exit codes: 0 done, 1 error, 2 usage, 3 transactions rejected or dead-lettered,\n"
    "            4 later than promised, 5 busy, full or not reachable, 6 data are damaged,\n"
    "            124 waited long enough, 130 interrupted";

// What a command says of its log.
struct LogOptions {
  base::LogLevel level = base::MinLogLevel();
  base::LogFormat format = base::LogFormat::kText;
};
// A command has options of its own: a variable is read for each of them, also for those that are
// not called.
using LogOptionsByCommand = std::map<const CLI::App*, LogOptions>;

void AddLogOptionsWhereThereAreNone(CLI::App* app, LogOptionsByCommand* options) {
  const auto commands = app->get_subcommands(
      [](const CLI::App* command) { return !command->get_name().empty(); });  // no option groups
  for (CLI::App* const command : commands) AddLogOptionsWhereThereAreNone(command, options);
  if (!commands.empty() || app->get_option_no_throw("--log-level") != nullptr) return;
  LogOptions& own = (*options)[app];
  host::AddLogOptions(app, &own.level, &own.format);
  // A command that ends by itself is switched by no signal.
  app->get_option("--log-level")->description("The lowest level that is logged");
}

void SetLogOf(const CLI::App& command, const LogOptionsByCommand& options) {
  const auto found = options.find(&command);
  if (found == options.end()) return;  // it sets its log itself
  base::SetMinLogLevel(found->second.level);
  base::SetLogFormat(found->second.format);
}

// A word that is not known is often a slip for the one that is missed.
bool IsOfWords(const CLI::ParseError& error) {
  const auto code = static_cast<CLI::ExitCodes>(error.get_exit_code());
  return code == CLI::ExitCodes::RequiredError || code == CLI::ExitCodes::ExtrasError;
}

// CLI11 has codes of its own for each mistake; ours are 0 for help and 2 for usage.
int AnswerParseError(const CLI::App& app, const CLI::ParseError& error,
                     absl::Span<const char* const> words, const Environment& environment) {
  if (error.get_exit_code() == 0) {
    app.exit(error, *environment.out, *environment.err);
    return kOk;
  }
  const std::string unknown = IsOfWords(error) ? ExplainUnknownWord(app) : "";
  *environment.err << (unknown.empty() ? ExplainParseError(app, error, words) : unknown);
  return kUsage;
}

// The environment of a shell may have variables of other programs, so only those count that are
// near to one of muster's. `muster up` warns as a service does, and a command that muster starts
// itself inherits what its parent has warned of.
void WarnOfMisspeltVariables(const CLI::App& app, const Environment& environment) {
  const CLI::App* const command = app.get_subcommands().front();
  if (command->get_name() == "up" || command->get_group().empty()) return;
  for (const host::UnknownVariable& unknown : host::UnknownVariables()) {
    if (unknown.meant.empty()) continue;
    *environment.err << "muster: " << unknown.name
                     << " of the environment is ignored; did you mean " << unknown.meant << "?\n";
  }
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

}  // namespace

int RunCommandLine(int argc, const char* const* argv, const Environment& environment) {
  CLI::App app(kAbout, "muster");
  app.footer(kFooter);
  app.set_version_flag("--version", "muster " + host::BuildInWords());
  app.require_subcommand(1);
  AddRun(&app, environment);
  AddReport(&app, environment);
  AddBatch(&app, environment);
  AddCall(&app, environment);
  AddSchedule(&app, environment);
  AddGc(&app, environment);
  AddQueue(&app, environment);
  AddCheck(&app, environment);
  AddCost(&app, environment);
  AddJob(&app, environment);
  AddScale(&app, environment);
  AddStream(&app, environment);
  AddReplay(&app, environment);
  AddWorker(&app, environment);
  AddPartition(&app, environment);
  AddPartitionReplay(&app, environment);
  AddRelease(&app, environment);
  AddDoctor(&app, environment);
  AddUp(&app, environment);
  LogOptionsByCommand log_options;
  AddLogOptionsWhereThereAreNone(&app, &log_options);
  AddServeHandler(&app, environment);
  AddCompletion(&app, environment);
  AddHelp(&app, environment);
  AddVersion(&app, environment);
  host::CheckNumbers(&app);
  host::CheckVariablesAreKnown(app);
  app.parse_complete_callback([&] {
    SetLogOf(Innermost(app), log_options);
    WarnOfMisspeltVariables(app, environment);
  });
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return AnswerParseError(app, error, {argv, static_cast<size_t>(argc)}, environment);
  }
  return environment.exit_code;
}

int Main(int argc, char** argv, const handler::HandlerRegistry& handlers) {
  const std::string name = argc == 0 ? "" : std::filesystem::path(argv[0]).filename().string();
  if (name == "muster-initiator") return initiator::Main(argc, argv);
  if (name == "muster-processor") return processor::Main(argc, argv, handlers);
  if (name == "muster-controller") return controller::Main(argc, argv);
  os::PrepareProcess();
  os::ExitWhenExhausted("muster", kUnreachable);
  Environment environment;
  environment.handlers = &handlers;
  environment.clock = base::RealClock();
  environment.out = &std::cout;
  environment.err = &std::cerr;
  environment.err_is_terminal = isatty(STDERR_FILENO) == 1;
  return CheckWritten(RunCommandLine(argc, argv, environment));
}

}  // namespace muster::cli
