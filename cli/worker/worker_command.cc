// SPDX-License-Identifier: Apache-2.0

// muster worker list | scale | pause | resume | drain
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "cli/output/environment.h"
#include "cli/output/format.h"
#include "cli/server/mesh_client.h"
#include "cli/server/options.h"
#include "cli/worker/commands.h"
#include "cli/worker/worker_view.h"
#include "muster/args/command.h"
#include "muster/args/option.h"
#include "muster/base/proto_time.h"
#include "muster/base/quantity.h"
#include "muster/base/status.h"
#include "muster/listener/listener.h"
#include "muster/v1/worker_service.grpc.pb.h"
#include "nlohmann/json.hpp"

namespace muster::cli {
namespace {

using nlohmann::ordered_json;
using Stub = v1::WorkerService::Stub;

struct WorkerOptions {
  CommonOptions common;
  std::string instance;  // empty: all
  std::string job;       // empty: all
  bool all = false;
  int threads = 0;
  std::string grace = "30s";
};

// What a processor did, for one of its jobs or for all that are meant.
struct WorkerResult {
  std::string job;
  std::string what;
  ordered_json details;
};
using WorkerResults = std::vector<WorkerResult>;
using Deed = absl::StatusOr<WorkerResults> (*)(const MeshClient&, const Worker&,
                                               const WorkerOptions&);

// Says of each processor that failed why it did. For the exit code an error counts for more than no
// answer, in any order.
void FailEach(const std::vector<absl::Status>& failures, const Environment& environment) {
  int code = kOk;
  for (const absl::Status& failure : failures) {
    environment.Fail(failure);
    if (code != kError) code = environment.exit_code;
  }
  environment.exit_code = code;
}

absl::StatusOr<std::unique_ptr<MeshClient>> OpenMesh(const WorkerOptions& options) {
  return MeshClient::Open(options.common, "processors are found by a server");
}

absl::Status NobodyWorksFor(const std::string& job) {
  return absl::NotFoundError(absl::StrCat("no processor works for job '", job, "'"));
}

absl::StatusOr<v1::QueryStateResponse> Query(const MeshClient& mesh, const Worker& worker,
                                             const std::string& job) {
  if (!worker.serves()) return absl::CancelledError("it leaves");
  v1::QueryStateRequest request;
  request.set_job(job);
  return mesh.Call(&Stub::QueryState, request, worker.peer);
}

absl::Status List(const WorkerOptions& options, const Environment& environment) {
  MUSTER_ASSIGN_OR_RETURN(const auto mesh, OpenMesh(options));
  MUSTER_ASSIGN_OR_RETURN(const std::vector<Worker> workers, FindWorkers(*mesh, options.instance));
  const auto answers =
      ParallelMap(workers, [&](const Worker& one) { return Query(*mesh, one, options.job); });
  Table table = WorkerView::Columns();
  ordered_json json = ordered_json::array();
  std::vector<absl::Status> failures;
  for (size_t i = 0; i < workers.size(); ++i) {
    for (const WorkerView& view : ViewsOf(workers[i], answers[i], options.job)) {
      table.AddRow(view.Row());
      json.push_back(view.Json());
    }
    const absl::Status& status = answers[i].status();
    if (!workers[i].serves() || status.ok() || absl::IsNotFound(status)) continue;
    failures.push_back(base::Annotate(status, workers[i].name()));
  }
  PrintRows(table, json, options.common, environment);
  FailEach(failures, environment);
  return absl::OkStatus();
}

// Those that are there to do something. Unavailable: none is.
absl::StatusOr<std::vector<Worker>> FindServing(MeshClient& mesh, const WorkerOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(std::vector<Worker> workers, FindWorkers(mesh, options.instance));
  std::erase_if(workers, [](const Worker& worker) { return !worker.serves(); });
  if (!workers.empty()) return workers;
  if (!options.instance.empty()) {
    return absl::UnavailableError(absl::StrCat(options.instance, ": it leaves, or has left"));
  }
  return absl::UnavailableError(
      absl::StrCat(mesh.options().address, ": it has heard of no processor"));
}

// Does `deed` on each processor and prints what it did. Skips a processor that does not work for
// the job, unless it is named or no processor works for the job.
absl::Status ForEachWorker(const WorkerOptions& options, Deed deed,
                           const Environment& environment) {
  MUSTER_ASSIGN_OR_RETURN(const auto mesh, OpenMesh(options));
  MUSTER_ASSIGN_OR_RETURN(const std::vector<Worker> workers, FindServing(*mesh, options));
  const auto answers =
      ParallelMap(workers, [&](const Worker& one) { return deed(*mesh, one, options); });
  Table table;
  table.AddColumns({"instance", "job", "answer"});
  ordered_json json = ordered_json::array();
  std::vector<absl::Status> failures;
  for (size_t i = 0; i < workers.size(); ++i) {
    const absl::Status& status = answers[i].status();
    if (absl::IsNotFound(status) && options.instance.empty()) continue;
    if (!status.ok()) {
      failures.push_back(base::Annotate(status, workers[i].name()));
      continue;
    }
    for (const WorkerResult& result : *answers[i]) {
      table.AddRow({workers[i].name(), result.job.empty() ? "all" : result.job, result.what});
      json.push_back({{"instance", workers[i].name()}, {"job", result.job}});
      json.back().update(result.details);
    }
  }
  if (json.empty() && failures.empty() && !options.job.empty()) return NobodyWorksFor(options.job);
  PrintRows(table, json, options.common, environment);
  FailEach(failures, environment);
  return absl::OkStatus();
}

// Starts as many tasks as may be missing; tasks that find no work end again. Answers how many it
// started.
absl::StatusOr<int> StartMissing(const MeshClient& mesh, const Worker& worker,
                                 const v1::ListenerState& state) {
  const int missing = state.options().max_dequeue_tasks() - state.active_dequeue_tasks();
  const bool listens = state.phase() == v1::LISTENER_PHASE_LISTENING;
  if (!listens || state.queue_depth() == 0 || missing <= 0) return 0;
  v1::StartListenerRequest request;
  request.set_job(state.job());
  request.set_thread_count(missing);
  MUSTER_RETURN_IF_ERROR(mesh.Call(&Stub::StartListener, request, worker.peer).status());
  return missing;
}

absl::StatusOr<WorkerResults> Scale(const MeshClient& mesh, const Worker& worker,
                                    const WorkerOptions& options) {
  v1::SetOptionsRequest request;
  request.set_job(options.job);
  request.mutable_options()->set_max_dequeue_tasks(options.threads);
  MUSTER_ASSIGN_OR_RETURN(const auto set, mesh.Call(&Stub::SetOptions, request, worker.peer));
  WorkerResults deeds;
  for (const v1::ListenerState& state : set.listeners()) {
    const absl::StatusOr<int> started = StartMissing(mesh, worker, state);
    MUSTER_RETURN_IF_ERROR(base::Annotate(
        started.status(), absl::StrCat("job ", state.job(), " may have ", options.threads,
                                       " threads now, but they could not be started")));
    const int max = state.options().max_dequeue_tasks();
    const int active = state.active_dequeue_tasks();
    deeds.push_back(
        {state.job(),
         absl::StrCat("at most ", max, " threads; ", active, " active, ", *started, " started, ",
                      Counted(static_cast<uint64_t>(state.queue_depth()), "message"), " ready"),
         {{"threads_max", max},
          {"threads_active", active},
          {"started", *started},
          {"queue_depth", state.queue_depth()}}});
  }
  return deeds;
}

absl::StatusOr<WorkerResults> Pause(const MeshClient& mesh, const Worker& worker,
                                    const WorkerOptions& options) {
  v1::PauseRequest request;
  request.set_job(options.job);
  MUSTER_RETURN_IF_ERROR(mesh.Call(&Stub::Pause, request, worker.peer).status());
  return WorkerResults{{options.job, "paused", {{"answer", "paused"}}}};
}

absl::StatusOr<WorkerResults> Resume(const MeshClient& mesh, const Worker& worker,
                                     const WorkerOptions& options) {
  v1::ResumeRequest request;
  request.set_job(options.job);
  MUSTER_RETURN_IF_ERROR(mesh.Call(&Stub::Resume, request, worker.peer).status());
  return WorkerResults{{options.job, "resumed", {{"answer", "resumed"}}}};
}

// Answers when it has stopped: the call may take the grace, and as long as others take.
absl::StatusOr<WorkerResults> Drain(const MeshClient& mesh, const Worker& worker,
                                    const WorkerOptions& options) {
  MUSTER_ASSIGN_OR_RETURN(const absl::Duration grace, base::ParseDuration(options.grace));
  v1::DrainRequest request;
  request.set_job(options.job);
  *request.mutable_grace() = base::ToProto(grace);
  MUSTER_ASSIGN_OR_RETURN(const auto drained, mesh.Call(&Stub::Drain, request, worker.peer,
                                                        grace + rpc::kDefaultCallTimeout));
  return WorkerResults{
      {options.job,
       absl::StrCat("drained; ",
                    Counted(static_cast<uint64_t>(drained.messages_released()), "message"),
                    " given back"),
       {{"answer", "drained"}, {"messages_released", drained.messages_released()}}}};
}

std::string CheckGrace(const std::string& text) {
  return base::ParseDuration(text).ok() ? "" : absl::StrCat("'", text, "' is no time like 30s");
}

}  // namespace

void AddWorker(CLI::App* app, const Environment& environment) {
  CLI::App* const parent =
      args::AddSubcommand(app, "worker", "Look after the processors of a mesh");
  args::RequireSubcommand(parent);
  const auto options = std::make_shared<WorkerOptions>();
  const auto add_verb = [&](const char* name, const char* about, auto verb) {
    CLI::App* const command = AddServerVerb(parent, {name, about}, options, verb, environment);
    args::Add(command, "--instance", &options->instance, "This processor only");
    args::Add(command, "--job", &options->job, "What it does for this job only");
    return command;
  };
  add_verb("list", "What each processor does for each job", List);
  const auto add_deed = [&](const char* name, const char* about, Deed deed) {
    return add_verb(name, about, [deed](const WorkerOptions& chosen, const Environment& where) {
      return ForEachWorker(chosen, deed, where);
    });
  };
  args::Add(add_deed("scale", "Let each have so many threads for a job, until it restarts", Scale),
            "THREADS", &options->threads, "At most, for each job")
      .Required()
      .Check(args::Range(1, listener::kMaxDequeueTasks));
  // A forgotten option must not stop the whole fleet, so the command requires one.
  const auto ask_whom = [&](CLI::App* command, const std::vector<const char*>& names) {
    CLI::App* const whom = args::AddOptionGroup(command, "whom");
    for (const char* name : names) args::AddToGroup(whom, args::Find(command, name));
    args::AddFlag(whom, "--all", &options->all, "Every processor")
        .Excludes(args::Find(command, "--instance"));
    args::RequireOptions(whom, 1, 0);
  };
  ask_whom(add_deed("pause", "Let them finish what they have, and take nothing more", Pause),
           {"--instance", "--job"});
  // Without a choice it means all, too: nothing is lost by it. The flag is the one of `pause`.
  CLI::App* const resume = add_deed("resume", "End a pause", Resume);
  args::AddFlag(resume, "--all", &options->all, "Every processor, as without any choice")
      .Excludes(args::Find(resume, "--instance"));
  CLI::App* const drain =
      add_deed("drain", "Stop them for good, so that they can be taken away", Drain);
  args::Add(drain, "--grace", &options->grace, "What handlers may take to finish")
      .CaptureDefaultStr()
      .Check(CheckGrace);
  // What is stopped for good works again only after a restart: a job alone names too many.
  ask_whom(drain, {"--instance"});
}

}  // namespace muster::cli
