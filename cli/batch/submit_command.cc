// SPDX-License-Identifier: Apache-2.0

// muster batch submit | watch | cancel

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "cli/batch/batch_view.h"
#include "cli/batch/commands.h"
#include "cli/batch/conclusion.h"
#include "cli/batch/follower.h"
#include "cli/batch/outcome.h"
#include "cli/batch/wait_limit.h"
#include "cli/output/environment.h"
#include "cli/output/format.h"
#include "cli/schedule/new_schedule.h"
#include "cli/schedule/schedule_view.h"
#include "cli/server/mesh_client.h"
#include "cli/server/options.h"
#include "muster/args/option.h"
#include "muster/base/clock.h"
#include "muster/base/fingerprint.h"
#include "muster/base/names.h"
#include "muster/base/proto_time.h"
#include "muster/base/status.h"
#include "muster/base/text.h"
#include "muster/client/batch.h"
#include "muster/input/byte_source.h"
#include "muster/os/stop_signals.h"
#include "muster/rpc/status.h"
#include "muster/v1/batch_service.grpc.pb.h"
#include "muster/v1/schedule_service.pb.h"
#include "nlohmann/json.hpp"
#include "services/initiator/batch/source.h"

namespace muster::cli {
namespace {

// Also where a server says less.
constexpr absl::Duration kLeastWaitForRoom = absl::Seconds(1);
constexpr char kBatches[] = "muster batch list";

struct SubmitOptions {
  CommonOptions common;
  std::string job;
  std::string input;
  std::string request_id;
  std::string handler_version;
  std::string tenant;
  std::string reason;
  std::string traceparent;
  std::optional<absl::Duration> sla;
  item::Labels labels;
  NewSchedule later;  // when to submit, unless that is now
  uint64_t batch = 0;
  bool always_new = false;
  bool wait_for_room = false;
  bool wait = false;
  bool watch = false;
  bool quiet = false;
  absl::Duration wait_timeout = absl::InfiniteDuration();
};

// The same content is the same submission, so that the command can be repeated as it is.
absl::StatusOr<std::string> RequestId(const SubmitOptions& options,
                                      const input::ByteSource& content) {
  if (!options.request_id.empty()) return options.request_id;
  if (options.always_new) return base::MakeInstanceId("submission");
  base::Fingerprinter hash;
  std::string piece(size_t{1} << 20, '\0');
  for (uint64_t offset = 0; offset < content.size();) {
    MUSTER_ASSIGN_OR_RETURN(const size_t got, content.Read(offset, piece.data(), piece.size()));
    hash.Update(absl::string_view(piece.data(), got));
    offset += got;
  }
  return absl::StrCat(options.job, ":", hash.Digest().ToHex());
}

absl::StatusOr<v1::SubmitHeader> HeaderOf(const SubmitOptions& options,
                                          const input::ByteSource& content) {
  v1::SubmitHeader header;
  header.set_job(options.job);
  MUSTER_ASSIGN_OR_RETURN(*header.mutable_request_id(), RequestId(options, content));
  if (!options.handler_version.empty()) header.set_handler_version(options.handler_version);
  header.set_tenant(options.tenant);
  header.set_size_hint(content.size());
  header.mutable_labels()->insert(options.labels.begin(), options.labels.end());
  if (options.sla.has_value()) *header.mutable_sla() = base::ToProto(*options.sla);
  return header;
}

// Before anything is uploaded: no batch begins of content that the job cannot read. Where the job
// cannot be asked for, the initiator says what is wrong.
absl::Status CheckContent(const SubmitOptions& options, const input::ByteSource& content,
                          const MeshClient& mesh) {
  const auto job = JobOf(mesh, options.job);
  if (!job.has_value()) return absl::OkStatus();
  return base::Annotate(initiator::batch::CheckNewContent(content, job->input), options.input);
}

void SetTrace(const std::optional<base::TraceContext>& trace, v1::SubmitHeader* header) {
  if (!trace.has_value()) return;
  header->set_traceparent(trace->ToTraceparent());
  header->set_tracestate(trace->state);
}

// Prints what became of the batch, and remembers the exit code that it stands for.
absl::Status Conclude(const absl::StatusOr<v1::BatchStatus>& end, const MeshClient& mesh,
                      const SubmitOptions& options, const Environment& environment) {
  MUSTER_ASSIGN_OR_RETURN(const std::optional<Outcome> ended, Ended(end, environment));
  if (!ended.has_value()) return absl::OkStatus();
  const Outcome& outcome = *ended;
  if (!PrintIfStructured(outcome.Json(), options.common, environment)) {
    *environment.out << outcome.Text() << WhereToRead(outcome.batch);
  }
  const auto job = JobOf(mesh, outcome.job);
  const job::Tolerance tolerate = job.has_value() ? job->tolerate : job::Tolerance();
  *environment.err << outcome.Losses(tolerate, "");
  if (job.has_value()) *environment.err << outcome.MultilineWarning(job->input);
  environment.exit_code = outcome.Code(tolerate);
  return absl::OkStatus();
}

// nullptr: the command shows no progress bar.
std::unique_ptr<ProgressBar> BarFor(const Follower& follower, const SubmitOptions& options,
                                    const Environment& environment) {
  if (options.quiet || !(options.watch || environment.err_is_terminal)) return nullptr;
  return BarOf(follower, environment);
}

void PrintSubmitted(const v1::BatchStatus& status, bool was_complete, const SubmitOptions& options,
                    const Environment& environment) {
  if (PrintIfStructured(OutcomeOf(status).Json(), options.common, environment)) return;
  if (was_complete) {
    *environment.out << WhereToRead(status.batch());
  } else {
    *environment.out << "batch " << status.batch() << " is submitted\nwatch it: muster batch watch "
                     << status.batch() << "\n";
  }
}

// When to submit again what was refused because too much waits already; nullopt: it was not, or the
// submitter would rather know.
std::optional<absl::Duration> AwaitsRoom(const absl::Status& refused,
                                         const SubmitOptions& options) {
  const std::optional<rpc::ErrorReason> reason = rpc::Reason(refused);
  if (!options.wait_for_room || !reason || reason->reason != "DRAIN_TOO_LONG") return std::nullopt;
  return std::max(kLeastWaitForRoom, rpc::RetryAfter(refused).value_or(kLeastWaitForRoom));
}

// `batch` is 0 where none was heard of, which does not mean that there is none: the answer may have
// been under way. With --new the same command would begin another batch.
std::string HowToGoOn(absl::string_view ended, uint64_t batch, const v1::SubmitHeader& header,
                      const SubmitOptions& options) {
  const std::string& id = header.request_id();
  const std::string again = absl::StrCat(
      "; run the same command again",
      options.always_new ? absl::StrCat(" with --request-id ", base::ShellQuoted(id), " for --new")
                         : "");
  if (batch != 0) return absl::StrCat(ended, again, " to go on with batch ", batch);
  return absl::StrCat(ended, " before the initiator said that it has accepted a batch", again,
                      " to go on: request id ", Printable(id), " never makes a second batch");
}

absl::Status SubmitLater(const SubmitOptions& options, const Environment& environment) {
  MUSTER_ASSIGN_OR_RETURN(const auto mesh,
                          MeshClient::Open(options.common, "batches are submitted to a server"));
  NewSchedule later = options.later;
  later.job = options.job;
  later.input = options.input;
  later.handler_version = options.handler_version;
  later.tenant = options.tenant;
  later.sla = options.sla;
  later.labels = options.labels;
  MUSTER_ASSIGN_OR_RETURN(const v1::Schedule schedule,
                          CreateSchedule(later, *mesh, environment.clock));
  if (PrintIfStructured(JsonOf(schedule), options.common, environment)) return absl::OkStatus();
  const std::string& name = schedule.spec().name();
  *environment.out << "a batch is submitted at " << Rfc3339(base::FromProto(schedule.spec().at()))
                   << " by schedule " << name << "\nlook at it: muster schedule get " << name
                   << "\n";
  return absl::OkStatus();
}

absl::Status Submit(const SubmitOptions& options, const Environment& environment) {
  if (options.later.is_once()) return SubmitLater(options, environment);
  const os::StopSignals signals(
      OnStop(options.always_new
                 ? "muster: stopped; `muster batch list` shows a batch that waits for its upload"
                 : "muster: stopped; the same command goes on with the upload"));
  MUSTER_ASSIGN_OR_RETURN(const auto mesh,
                          MeshClient::Open(options.common, "batches are submitted to a server"));
  const WaitLimit limit(options.wait_timeout, mesh.get(), environment.clock, signals.token());
  MUSTER_ASSIGN_OR_RETURN(const auto content, input::FileSource::Open(options.input));
  MUSTER_RETURN_IF_ERROR(CheckContent(options, *content, *mesh));
  MUSTER_ASSIGN_OR_RETURN(v1::SubmitHeader header, HeaderOf(options, *content));
  SetTrace(TraceOfCaller(options.traceparent, environment), &header);
  const bool follow = options.wait || options.watch;
  Follower follower(mesh.get(), &environment);
  std::unique_ptr<ProgressBar> bar;
  std::optional<bool> was_complete;  // unknown until the initiator has understood the header
  uint64_t batch = 0;
  client::SubmitOptions submit;
  submit.on_progress = [&](const client::SubmitProgress& progress) {
    if (was_complete.has_value()) return;
    was_complete = progress.complete;
    batch = progress.batch;
    if (*was_complete) return;  // no progress is made any more
    bar = BarFor(follower, options, environment);
    if (follow || bar != nullptr) follower.Begin(progress.batch);
  };
  submit.on_trouble = [&](const absl::Status& trouble) {
    *environment.err << "muster: " << Printable(trouble.message())
                     << "; the upload goes on when it answers" << std::endl;
  };
  const auto upload = [&] {
    return client::Submit(mesh->initiator(), header, *content, submit, environment.clock,
                          limit.token());
  };
  absl::StatusOr<v1::BatchStatus> submitted = upload();
  while (const auto wait = AwaitsRoom(submitted.status(), options)) {
    *environment.err << "muster: " << Printable(submitted.status().message()) << std::endl;
    if (!base::SleepUnlessStopped(environment.clock, *wait, limit.token())) {
      constexpr char kNoRoom[] = " before there was room; no batch was accepted";
      if (limit.is_over()) return TimedOut(absl::StrCat(kTimeIsUp, kNoRoom), environment);
      return absl::CancelledError(absl::StrCat("stopped", kNoRoom));
    }
    submitted = upload();
  }
  if (!submitted.ok()) {
    if (limit.is_over()) return TimedOut(HowToGoOn(kTimeIsUp, batch, header, options), environment);
    if (!signals.token().stop_requested()) return mesh->Explained(submitted.status());
    return absl::CancelledError(HowToGoOn("stopped", batch, header, options));
  }
  *environment.err << GrownWarning(options.input, content->size(), submitted->batch(), "");
  const bool is_done = was_complete.value_or(false) && submitted->complete();
  if (is_done) {
    *environment.err << "batch " << submitted->batch()
                     << " is done already; --new submits this input once more\n";
  }
  if (!follow) {
    PrintSubmitted(*submitted, is_done, options, environment);
    return absl::OkStatus();
  }
  if (is_done) return Conclude(submitted, *mesh, options, environment);
  follower.Begin(submitted->batch());  // not begun yet where the batch is open again meanwhile
  const auto end = follower.AwaitEnd(limit.left(), signals.token());
  if (bar != nullptr) bar->Finish();
  return Conclude(end, *mesh, options, environment);
}

absl::Status WatchBatch(const SubmitOptions& options, const Environment& environment) {
  const os::StopSignals signals(OnStop("muster: stopped; the batch goes on"));
  MUSTER_ASSIGN_OR_RETURN(const auto mesh,
                          MeshClient::Open(options.common, "batches are watched on a server"));
  const WaitLimit limit(options.wait_timeout, mesh.get(), environment.clock, signals.token());
  Follower follower(mesh.get(), &environment);
  follower.Begin(options.batch);
  SubmitOptions watching = options;
  watching.watch = true;
  const std::unique_ptr<ProgressBar> bar = BarFor(follower, watching, environment);
  const auto end = follower.AwaitEnd(limit.left(), signals.token());
  if (bar != nullptr) bar->Finish();
  return WithListHint(Conclude(end, *mesh, options, environment), kBatches);
}

absl::Status Cancel(const SubmitOptions& options, const Environment& environment) {
  MUSTER_ASSIGN_OR_RETURN(const auto mesh,
                          MeshClient::Open(options.common, "batches are cancelled on a server"));
  v1::CancelBatchRequest request;
  request.set_batch(options.batch);
  request.set_reason(options.reason);
  const auto cancelled = mesh->Call(&v1::BatchService::Stub::CancelBatch, request);
  if (!cancelled.ok()) return WithListHint(cancelled.status(), kBatches);
  const v1::CancelBatchResponse& response = *cancelled;
  nlohmann::ordered_json json = OutcomeOf(response.status()).Json();
  json["processors"] = response.processors();
  json["acknowledged"] = response.acknowledged();
  if (!PrintIfStructured(json, options.common, environment)) {
    *environment.out << "batch " << options.batch << " is cancelled; "
                     << Grouped(static_cast<uint64_t>(response.status().transactions()))
                     << " of its transactions were counted before\n"
                     << response.acknowledged() << " of " << response.processors()
                     << " processors have acknowledged that they work on it no more\n";
  }
  return absl::OkStatus();
}

}  // namespace

void AddSubmitVerbs(CLI::App* batch, const Environment& environment) {
  const auto options = std::make_shared<SubmitOptions>();
  const auto add_verb = [&](const char* name, const char* about, auto verb) {
    return AddServerVerb(batch, {name, about}, options, verb, environment);
  };
  CLI::App* const submit =
      add_verb("submit", "Upload a file as a batch of a job; again after a cut it goes on", Submit);
  args::Add(submit, "JOB", &options->job, "The job's name").Required();
  args::Add(submit, "--input", &options->input, "The file with the transactions").Required();
  const args::Option request_id =
      AddRequestId(submit,
                   "Names this submission; the same id never makes a second batch. Without it, the "
                   "content does",
                   &options->request_id);
  args::Add(submit, "--handler-version", &options->handler_version,
            "The version that the batch is bound to; without it, the job's present one, or "
            "none while no processor has the job");
  args::Add(submit, "--tenant", &options->tenant, "Whose batch it is");
  AddSla(submit, kSubmittedSla, &options->sla);
  AddLabels(submit, "Find the batch by this later, such as team=billing; repeatable",
            &options->labels);
  AddTraceparent(submit, &options->traceparent);
  args::AddFlag(submit, "--new", &options->always_new,
                "A new batch, also where this input was submitted before")
      .Excludes(request_id);
  args::AddFlag(submit, "--wait-for-room", &options->wait_for_room,
                "While the job's queue.max_drain lets no batch in, try again when the server says");
  args::AddFlag(submit, "--wait", &options->wait, "Wait until the batch is complete");
  args::AddFlag(submit, "--watch", &options->watch, "Wait, and show how far it is on stderr");
  args::AddFlag(submit, "-q,--quiet", &options->quiet, "No progress on stderr");
  AddWaitTimeout(submit, &options->wait_timeout);
  // These are about a batch that is submitted now.
  AddMoment(submit,
            {"--request-id", "--traceparent", "--new", "--wait-for-room", "--wait", "--watch",
             "--wait-timeout"},
            &options->later);
  CLI::App* const watch =
      add_verb("watch", "Show how far a batch is, until it is complete", WatchBatch);
  args::Add(watch, "BATCH", &options->batch, "Its number").Required();
  args::AddFlag(watch, "-q,--quiet", &options->quiet, "No progress on stderr");
  AddWaitTimeout(watch, &options->wait_timeout);
  CLI::App* const cancel =
      add_verb("cancel", "Give a batch up; what was counted stays counted", Cancel);
  args::Add(cancel, "BATCH", &options->batch, "Its number").Required();
  args::Add(cancel, "--reason", &options->reason, "For the record");
}

}  // namespace muster::cli
