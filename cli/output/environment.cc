// SPDX-License-Identifier: Apache-2.0
#include "cli/output/environment.h"

#include <cstdlib>
#include <map>
#include <ostream>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cli/output/format.h"
#include "muster/args/command.h"
#include "muster/args/option.h"
#include "muster/base/text.h"

namespace muster::cli {
namespace {

using Formats = std::map<std::string, OutputFormat>;

const Formats& AllFormats() {
  static const auto* const formats = new Formats{{"table", OutputFormat::kTable},
                                                 {"json", OutputFormat::kJson},
                                                 {"yaml", OutputFormat::kYaml},
                                                 {"csv", OutputFormat::kCsv}};
  return *formats;
}

std::string WantedFormat() {
  const char* const wanted = std::getenv("MUSTER_OUTPUT");  // NOLINT(concurrency-mt-unsafe): alone
  return wanted == nullptr ? "" : wanted;
}

// What MUSTER_OUTPUT asks for, where the command can do it.
OutputFormat DefaultFormat(const Formats& formats) {
  const auto format = formats.find(WantedFormat());
  return format == formats.end() ? OutputFormat::kTable : format->second;
}

// A format that only other commands can do is passed over, a word that no command knows is not: a
// script would read a table for JSON.
void CheckWantedFormat(CLI::App* command) {
  const std::string wanted = WantedFormat();
  if (wanted.empty() || !args::Has(*command, "--output")) return;
  if (args::Find(command, "--output").count() > 0 || AllFormats().count(wanted) > 0) return;
  args::Refuse("MUSTER_OUTPUT", absl::StrCat("'", wanted, "' is not table, json, yaml or csv"));
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

CLI::App* AddCommand(CLI::App* parent, const std::string& name, const std::string& about,
                     const Environment& environment, std::function<absl::Status()> run) {
  CLI::App* const command = args::AddSubcommand(parent, name, about);
  args::OnRun(command, [command, run = std::move(run), &environment] {
    CheckWantedFormat(command);
    if (const absl::Status status = run(); !status.ok()) environment.Fail(status);
  });
  return command;
}

void AddDataDir(CLI::App* command, CommonOptions* options) {
  args::Add(command, "--data-dir", &options->data_dir, "Where queue, ledger and report live")
      .Envname("MUSTER_DATA_DIR")
      .CaptureDefaultStr();
}

std::string DataDirOption(const std::string& data_dir) {
  // Without the option, a command would go to that server.
  const char* const server = std::getenv(kServerVariable);  // NOLINT(concurrency-mt-unsafe): alone
  const bool has_server = server != nullptr && *server != '\0';
  if (data_dir == CommonOptions().data_dir && !has_server) return "";
  return absl::StrCat(" --data-dir ", base::ShellQuoted(data_dir));
}

std::string HowToGiveUp(uint64_t batch, const std::string& data_dir) {
  return absl::StrCat("start `muster up --data-dir ", base::ShellQuoted(data_dir),
                      "`, and cancel it there: muster batch cancel ", batch,
                      " --server 127.0.0.1:7700");
}

void AddOutput(CLI::App* command, CommonOptions* options, Csv csv) {
  Formats formats = AllFormats();
  if (csv == Csv::kNo) formats.erase("csv");
  const std::string names = csv == Csv::kYes ? "table, json, yaml or csv" : "table, json or yaml";
  options->output = DefaultFormat(formats);
  args::Add(command, "-o,--output", &options->output,
            "What to print it as; MUSTER_OUTPUT sets the default")
      .Transform(args::Validator{[formats, names](std::string& text) -> std::string {
                                   const auto format = formats.find(text);
                                   if (format == formats.end())
                                     return absl::StrCat("'", text, "' is not ", names);
                                   text = absl::StrCat(static_cast<int>(format->second));
                                   return "";
                                 },
                                 csv == Csv::kYes ? "{table,json,yaml,csv}" : "{table,json,yaml}"});
}

absl::Status WithListHint(const absl::Status& status, absl::string_view command) {
  // What one can do comes behind a semicolon, in all messages.
  if (!absl::IsNotFound(status) || absl::StrContains(status.message(), ';')) return status;
  absl::Status hinted(status.code(),
                      absl::StrCat(status.message(), "; `", command, "` shows those there are"));
  status.ForEachPayload(
      [&](absl::string_view type, const absl::Cord& payload) { hinted.SetPayload(type, payload); });
  return hinted;
}

absl::Status WithListHint(const absl::Status& status, absl::string_view command,
                          const CommonOptions& options) {
  const std::string where = options.server.named() ? "" : DataDirOption(options.data_dir);
  return WithListHint(status, absl::StrCat(command, where));
}

}  // namespace muster::cli
