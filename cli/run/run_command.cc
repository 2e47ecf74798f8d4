// SPDX-License-Identifier: Apache-2.0

// muster run JOB --input FILE
#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "cli/batch/batch_output.h"
#include "cli/batch/outcome.h"
#include "cli/batch/report.h"
#include "cli/output/environment.h"
#include "cli/output/format.h"
#include "cli/output/progress_bar.h"
#include "cli/run/commands.h"
#include "cli/run/handler_place.h"
#include "cli/run/local_run.h"
#include "cli/server/options.h"
#include "muster/args/command.h"
#include "muster/args/option.h"
#include "muster/backend/backend.h"
#include "muster/base/log.h"
#include "muster/base/mutex.h"
#include "muster/base/status.h"
#include "muster/job/job_file.h"
#include "muster/os/stop_signals.h"
#include "nlohmann/json.hpp"
#include "services/host/host.h"
#include "services/host/host_options.h"
#include "services/host/parse_error.h"
#include "services/initiator/back_pressure_options.h"
#include "services/processor/processor_role.h"

namespace muster::cli {
namespace {

// Rows of each group that `run` shows; `muster report` has them all.
constexpr int64_t kShownRows = 15;
constexpr int kMaxThreads = 256;
constexpr absl::Duration kMaxHandlerPatience = absl::Hours(24);

// From SIGTERM to exit at most 5 s pass, so that no SIGKILL is necessary.
os::StopOptions OnStop(base::LogLevel level) {
  return {.grace = absl::Milliseconds(4500),
          .exit_code = kInterrupted,
          .when_late = "muster: a handler does not stop; leaving it behind",
          .when_hurried = "muster: stopped at once; run the same command again to go on",
          .on_user_signal = [level] { host::SwitchLogLevel(level); }};
}

struct RunOptions {
  CommonOptions common;
  std::string job_file;
  std::string input;
  std::string request_id;
  std::string traceparent;
  std::string output_file;
  std::optional<absl::Duration> sla;
  std::string metrics;
  bool allow_plaintext_metrics = false;
  base::LogLevel log_level = base::MinLogLevel();
  base::LogFormat log_format = base::LogFormat::kText;
  bool always_new = false;
  bool quiet = false;
  double calls_per_second = 0;
  initiator::batch::BackPressureOptions back_pressure;
  int threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  processor::HandlerAccess handlers;
};

// Ends a run on a signal, or if its handler refuses the job, cannot be reached or has another
// version: the items would wait for ever. Thread-safe.
class RunEnd {
 public:
  explicit RunEnd(const std::stop_token& signals)
      : on_signal_(signals, [this] { stop_.request_stop(); }) {}

  void GiveUp(const absl::Status& why) {
    {
      base::MutexLock lock(&mu_);
      trouble_.Update(why);
    }
    stop_.request_stop();
  }

  std::stop_token token() const { return stop_.get_token(); }
  // OK: it was not given up.
  absl::Status trouble() {
    base::MutexLock lock(&mu_);
    return trouble_;
  }

 private:
  std::stop_source stop_;
  base::Mutex mu_;
  absl::Status trouble_ ABSL_GUARDED_BY(mu_);
  const std::stop_callback<std::function<void()>> on_signal_;  // last: it uses stop_
};

double PerSecond(const RunSummary& summary) {
  const double seconds = absl::ToDoubleSeconds(summary.lapse);
  const auto counted = static_cast<uint64_t>(summary.progress.transactions);
  return seconds > 0 ? static_cast<double>(counted - summary.counted_before) / seconds : 0;
}

Outcome OutcomeOf(const RunSummary& summary) {
  Outcome outcome;
  outcome.batch = summary.batch.number;
  outcome.job = summary.batch.job;
  outcome.counted = summary.progress;
  outcome.counted_before = summary.counted_before;
  outcome.seconds = absl::ToDoubleSeconds(summary.lapse);
  outcome.transactions_per_second = PerSecond(summary);
  outcome.complete = summary.complete;
  outcome.promise = summary.promise;
  outcome.multiline = summary.batch.multiline;
  return outcome;
}

void PrintSummary(const RunSummary& summary, const std::string& data_dir, std::ostream& out) {
  out << "\n" << OutcomeOf(summary).Text();
  const std::string where = DataDirOption(data_dir);
  out << "report:  muster report " << summary.batch.number << where << "   (or open "
      << backend::DataDirUrls(data_dir).report_file << " with sqlite3)\n"
      << "receipt: muster batch receipt " << summary.batch.number << " --verify" << where << "\n";
}

// Lines for people, on stderr, so that stdout holds nothing but the result.
void Announce(const initiator::batch::Submission& submission, const Environment& environment) {
  const uint64_t number = submission.batch.number;
  switch (submission.start) {
    case initiator::batch::Start::kNew:
      *environment.err << "batch " << number << " begins";
      if (!submission.batch.replaces.empty()) {
        *environment.err << ", and counts in place of batch " << submission.batch.replaces.front()
                         << ", whose input is the same, once it is complete";
      }
      *environment.err << "\n";
      break;
    case initiator::batch::Start::kContinued:
      *environment.err << "batch " << number << " goes on where it was stopped\n";
      break;
    case initiator::batch::Start::kDone:
      *environment.err << "batch " << number
                       << " is done already; --new counts this input once more, beside it\n";
      break;
  }
}

std::string ResumeHint(const RunSummary& summary) {
  return absl::StrCat("run the same command again to go on with batch ", summary.batch.number);
}

// What keeps the handler from working. To one that refuses the job another job may be the answer.
// `place` is where the job file names the handler.
absl::Status GivenUp(const absl::Status& trouble, const RunSummary& summary,
                     const std::string& place) {
  const absl::Status told = base::Annotate(trouble, place);
  if (!absl::IsUnavailable(told)) return told;
  return absl::UnavailableError(
      absl::StrCat(told.message(), "; once that is mended, ", ResumeHint(summary)));
}

// What is left waits for a decision.
absl::Status HeldUp(const RunSummary& summary, const RunOptions& options) {
  return absl::FailedPreconditionError(
      absl::StrCat("batch ", summary.batch.number,
                   " waits: ", item::InWords(*summary.held, DataDirOption(options.common.data_dir)),
                   "; then ", ResumeHint(summary)));
}

// nullopt: none was given up, or the report cannot be read, which is no reason to fail a run.
std::optional<report::ItemRow> FirstDeadLetter(const RunSummary& summary, LocalRun& run) {
  if (summary.progress.items_dead == 0) return std::nullopt;
  const auto reader = run.report().Read();
  if (!reader.ok()) return std::nullopt;
  const auto dead = (*reader)->DeadLetters(summary.batch.number, 0, 1);
  if (!dead.ok() || dead->empty()) return std::nullopt;
  return dead->front();
}

void ExplainOutcome(const RunSummary& summary, LocalRun& run, const job::JobDefinition& job,
                    const RunOptions& options, const Environment& environment) {
  if (summary.complete) {
    Outcome outcome = OutcomeOf(summary);
    outcome.first_dead = FirstDeadLetter(summary, run);
    *environment.err << outcome.Losses(job.tolerate, DataDirOption(options.common.data_dir))
                     << outcome.MultilineWarning(job.input)
                     << GrownWarning(options.input, run.submission().batch.source_size,
                                     summary.batch.number, DataDirOption(options.common.data_dir));
    return;
  }
  *environment.err << "stopped; " << ResumeHint(summary) << "\n";
}

absl::StatusOr<RunSummary> RunWithProgress(LocalRun& run, const RunOptions& options,
                                           const std::stop_token& stop,
                                           const Environment& environment) {
  if (options.quiet || run.submission().start == initiator::batch::Start::kDone)
    return run.Run(stop);
  ProgressBar bar(
      ProgressBarOptions::For(environment), [&run] { return run.progress(); }, environment.err,
      environment.clock);
  return run.Run(stop);
}

// What a run reads: also the script of a command, where one of its arguments is a file.
std::vector<std::string> SourcesOf(const RunOptions& options, const job::JobDefinition& job) {
  std::vector<std::string> sources = {options.input, options.job_file};
  const auto* const command = std::get_if<job::CommandHandlerSpec>(&job.handler);
  if (command == nullptr) return sources;
  for (const std::string& argument : command->argv) {
    sources.push_back(std::filesystem::path(job.folder) / argument);
  }
  return sources;
}

bool IsInputByName(const std::string& path) {
  static constexpr std::array<absl::string_view, 4> kEndings = {".csv", ".tsv", ".jsonl",
                                                                ".ndjson"};
  const std::string ending =
      absl::AsciiStrToLower(std::filesystem::path(path).extension().string());
  return std::find(kEndings.begin(), kEndings.end(), ending) != kEndings.end();
}

absl::StatusOr<job::JobDefinition> LoadJob(const std::string& path) {
  absl::StatusOr<job::JobDefinition> job = job::LoadJobFile(path);
  if (!absl::IsInvalidArgument(job.status()) || !IsInputByName(path)) return job;
  return absl::InvalidArgumentError(absl::StrCat(
      job.status().message(),
      "; it looks like an input, which goes behind --input: muster run JOB --input ", path));
}

absl::Status Run(const RunOptions& options, const Environment& environment) {
  base::SetLogFormat(options.log_format);
  base::SetMinLogLevel(options.log_level);
  const os::StopSignals signals(OnStop(options.log_level));
  MUSTER_RETURN_IF_ERROR(RequireFolder(options.common.data_dir));
  MUSTER_ASSIGN_OR_RETURN(const job::JobDefinition job, LoadJob(options.job_file));
  if (!options.output_file.empty()) {
    if (job.outputs.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          options.job_file, ": the job has no outputs, so there is nothing for --output-file"));
    }
    MUSTER_RETURN_IF_ERROR(
        CheckOutputFile(options.output_file, SourcesOf(options, job), options.common.data_dir));
  }
  RunEnd end(signals.token());
  processor::HandlerAccess access = options.handlers;
  access.on_refused = access.on_no_server = [&end](const absl::Status& why) { end.GiveUp(why); };
  MUSTER_ASSIGN_OR_RETURN(processor::JobHandler handler,
                          FindHandlerOf(job, options.job_file, access, environment));
  RunRequest request;
  request.job = &job;
  request.handler = std::move(handler);
  request.handler_place = HandlerPlace(job, options.job_file);
  request.input = options.input;
  request.data_dir = options.common.data_dir;
  request.metrics = options.metrics;
  request.allow_plaintext_metrics = options.allow_plaintext_metrics;
  request.threads = options.threads;
  request.calls_per_second = options.calls_per_second;
  request.back_pressure = options.back_pressure;
  request.request_id = options.request_id;
  request.sla = options.sla;
  request.always_new = options.always_new;
  request.trace = TraceOfCaller(options.traceparent, environment);
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<LocalRun> run,
                          LocalRun::Open(std::move(request), environment.clock, end.token()));
  Announce(run->submission(), environment);
  MUSTER_ASSIGN_OR_RETURN(const RunSummary summary,
                          RunWithProgress(*run, options, end.token(), environment));
  if (const absl::Status trouble = end.trouble(); !trouble.ok() && !summary.complete) {
    return GivenUp(trouble, summary, HandlerPlace(job, options.job_file));
  }
  if (summary.held.has_value()) return HeldUp(summary, options);
  if (!options.output_file.empty() && summary.complete) {
    MUSTER_RETURN_IF_ERROR(
        WriteOutputFile(run->report(), summary.batch.number, options.output_file));
  }
  const bool is_printed = PrintIfStructured(OutcomeOf(summary).Json(), options.common, environment);
  if (!is_printed && summary.complete) {
    MUSTER_ASSIGN_OR_RETURN(const auto reader, run->report().Read());
    const auto read = [&](const report::RowVisitor& visitor) {
      return report::VisitRows(*reader, summary.batch.number, "", visitor);
    };
    MUSTER_RETURN_IF_ERROR(WriteReport(read,
                                       {summary.batch.number, "", OutputFormat::kTable, kShownRows,
                                        DataDirOption(options.common.data_dir)},
                                       *environment.out));
    PrintSummary(summary, options.common.data_dir, *environment.out);
  }
  ExplainOutcome(summary, *run, job, options, environment);
  environment.exit_code = OutcomeOf(summary).Code(job.tolerate);
  return absl::OkStatus();
}

}  // namespace

void AddRun(CLI::App* app, const Environment& environment) {
  const auto options = std::make_shared<RunOptions>();
  CLI::App* const run = args::AddSubcommand(
      app, "run",
      "Run a job on an input, in this process, to the end; again after a crash it goes on");
  args::Add(run, "JOB", &options->job_file, "The job file (YAML)").Required();
  args::Add(run, "--input", &options->input, "The file with the transactions").Required();
  args::Add(run, "--output-file", &options->output_file,
            "Where the records go that the handler returns: CSV, or JSON lines if the name ends "
            "in .json or .jsonl")
      .TypeName("FILE");
  args::Add(run, "--threads", &options->threads, "Workers at most")
      .Check(args::Range(1, kMaxThreads))
      .Envname("MUSTER_THREADS")
      .CaptureDefaultStr();
  const args::Option request_id = AddRequestId(
      run, "Names this submission; the same id never makes a second batch", &options->request_id);
  args::Add(run, "--throttle", &options->calls_per_second,
            "Calls a second that each queue takes; more are told to come back later")
      .Check(args::Range(1.0, 1e9));
  initiator::AddBackPressureOptions(run, &options->back_pressure);
  AddSla(run, kSubmittedSla, &options->sla);
  AddTraceparent(run, &options->traceparent);
  args::AddFlag(
      run, "--new", &options->always_new,
      "A new batch, also where this input was worked through before: it counts once more. "
      "One that was cut off goes on")
      .Excludes(request_id);
  args::AddFlag(run, "-q,--quiet", &options->quiet, "No progress on stderr");
  processor::AddHandlerOptions(run, &options->handlers);
  args::AddFlag(run, "--allow-plaintext", &options->handlers.allow_plaintext,
                "Call handlers on other hosts without TLS")
      .Envname(host::EnvironmentName("--allow-plaintext"));
  host::AddDuration(
      run, "--handler-patience", &options->handlers.server_patience, absl::ZeroDuration(),
      kMaxHandlerPatience,
      "How long to wait for a handler server that is not there yet, or of another version");
  // No variables: MUSTER_METRICS is the address of a service, which may have it.
  args::Add(run, "--metrics", &options->metrics,
            "HOST:PORT of a listener for Prometheus, at /metrics, for as long as it runs")
      .TypeName("HOST:PORT");
  args::AddFlag(run, "--allow-plaintext-metrics", &options->allow_plaintext_metrics,
                "Serve metrics where others can reach them, without TLS");
  host::AddLogOptions(run, &options->log_level, &options->log_format);
  AddDataDir(run, &options->common);
  AddOutput(run, &options->common);
  args::OnRun(run, [options, run, &environment] {
    host::TakeRefusedVariables(run);
    if (const absl::Status status = Run(*options, environment); !status.ok()) {
      environment.Fail(status);
    }
  });
}

}  // namespace muster::cli
