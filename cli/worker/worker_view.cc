// SPDX-License-Identifier: Apache-2.0
#include "cli/worker/worker_view.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "muster/base/proto_time.h"

namespace muster::cli {

absl::StatusOr<std::vector<Worker>> FindWorkers(MeshClient& mesh, const std::string& name) {
  MUSTER_ASSIGN_OR_RETURN(std::vector<v1::Instance> instances, mesh.Instances(v1::ROLE_PROCESSOR));
  std::vector<Worker> workers;
  for (v1::Instance& instance : instances) {
    if (!name.empty() && instance.info().instance() != name) continue;
    Worker worker{std::move(instance), {}};
    if (worker.serves()) {
      MUSTER_ASSIGN_OR_RETURN(worker.peer,
                              mesh.Connect(worker.instance.info().address(), "muster-processor"));
    }
    workers.push_back(std::move(worker));
  }
  if (!name.empty() && workers.empty()) {
    return absl::NotFoundError(absl::StrCat(mesh.options().address,
                                            " has not heard of a processor '", name,
                                            "' lately; `muster worker list` shows those it has"));
  }
  return workers;
}

namespace {

using nlohmann::ordered_json;

std::string Cell(std::optional<int64_t> number) {
  return number.has_value() ? absl::StrCat(*number) : "-";
}

ordered_json JsonOf(std::optional<int64_t> number) {
  return number.has_value() ? ordered_json(*number) : ordered_json();
}

std::optional<absl::Duration> Optional(bool is_set, const google::protobuf::Duration& duration) {
  return is_set ? std::optional(base::FromProto(duration)) : std::nullopt;
}

ordered_json SecondsJson(std::optional<absl::Duration> duration) {
  return duration.has_value() ? ordered_json(absl::ToDoubleSeconds(*duration)) : ordered_json();
}

// The load that the last heartbeat tells of; null: none.
const v1::JobLoad* LoadOf(const Worker& worker, const std::string& job) {
  for (const v1::JobLoad& load : worker.instance.heartbeat().jobs()) {
    if (load.job() == job) return &load;
  }
  return nullptr;
}

WorkerView ViewOfProcess(const Worker& worker, const std::string& job) {
  WorkerView view;
  view.instance = worker.name();
  view.address = worker.instance.info().address();
  view.job = job;
  view.heard = base::FromProto(worker.instance.last_heartbeat());
  view.cpu_cores = worker.instance.heartbeat().cpu_cores();
  view.resident_bytes = worker.instance.heartbeat().resident_bytes();
  return view;
}

// What is known of it without asking it.
WorkerView ViewFromHeartbeat(const Worker& worker, const std::string& job) {
  WorkerView view = ViewOfProcess(worker, job);
  for (const v1::HandlerVersion& handler : worker.instance.info().handlers()) {
    if (handler.job() == job) view.handler_version = handler.version();
  }
  const v1::JobLoad* const load = LoadOf(worker, job);
  if (load == nullptr) return view;
  view.trouble = load->trouble();
  view.busy = load->threads_busy();
  view.active = load->threads();
  view.max = load->threads_max();
  view.depth = 0;
  for (const v1::PartitionLoad& partition : load->partitions()) *view.depth += partition.ready();
  view.items_per_second = load->items_per_second();
  const v1::ServiceTime& time = load->service_time();
  view.p50 = Optional(time.has_p50(), time.p50());
  view.p95 = Optional(time.has_p95(), time.p95());
  view.p99 = Optional(time.has_p99(), time.p99());
  return view;
}

// Why a parked processor waits; empty: it is not parked.
std::string WhyParked(const Worker& worker) {
  const v1::Standby& standby = worker.instance.heartbeat().standby();
  if (standby.release().empty() || standby.has_left()) return "";
  return absl::StrCat("parked until release ", standby.release());
}

// Jobs that the processor would work for, if it could. It has no listener of them to ask.
void AddUnserved(const Worker& worker, const std::string& job, std::vector<WorkerView>* views) {
  std::set<std::string> told;
  for (const WorkerView& view : *views) told.insert(view.job);
  for (const v1::JobLoad& load : worker.instance.heartbeat().jobs()) {
    const bool is_meant = job.empty() || load.job() == job;
    if (!is_meant || load.trouble().empty() || told.contains(load.job())) continue;
    views->push_back(ViewOfProcess(worker, load.job()));
    views->back().phase = "cannot work";
    views->back().trouble = load.trouble();
  }
}

std::vector<WorkerView> Asked(const Worker& worker, const v1::QueryStateResponse& answer,
                              const std::string& job) {
  std::vector<WorkerView> views;
  for (const v1::ListenerState& state : answer.listeners()) {
    WorkerView view = ViewFromHeartbeat(worker, state.job());
    view.phase = EnumName(v1::ListenerPhase_Name(state.phase()), "LISTENER_PHASE_");
    view.active = state.active_dequeue_tasks();
    view.max = state.options().max_dequeue_tasks();
    view.depth = state.queue_depth();
    view.wakeups_push = state.totals().wakeups_push();
    view.wakeups_safety = state.totals().wakeups_safety();
    view.wakeups_scheduled = state.totals().wakeups_scheduled();
    view.leases_lost = state.totals().leases_lost();
    const bool is_parked = state.phase() == v1::LISTENER_PHASE_PARKED;
    if (is_parked && view.trouble.empty()) view.trouble = WhyParked(worker);
    views.push_back(std::move(view));
  }
  AddUnserved(worker, job, &views);
  if (views.empty() && job.empty()) {
    views.push_back(ViewFromHeartbeat(worker, ""));
    views.back().phase = "no job";
    views.back().trouble = WhyParked(worker);
  }
  return views;
}

}  // namespace

Table WorkerView::Columns() {
  Table table;
  table.AddColumns({"instance", "job", "phase"});
  table.AddColumns({"busy", "active", "max", "queue", "items/s", "p95"}, Align::kRight);
  table.AddColumns({"handler", "last heartbeat", "trouble"});
  return table;
}

std::vector<std::string> WorkerView::Row() const {
  return {instance,
          OrDash(job),
          phase,
          Cell(busy),
          Cell(active),
          Cell(max),
          Cell(depth),
          items_per_second.has_value() ? absl::StrFormat("%.1f", *items_per_second) : "-",
          p95.has_value() ? absl::FormatDuration(absl::Trunc(*p95, absl::Microseconds(1))) : "-",
          OrDash(handler_version),
          Rfc3339(heard),
          OrDash(trouble)};
}

ordered_json WorkerView::Json() const {
  return {
      {"instance", instance},
      {"address", address},
      {"job", job},
      {"phase", phase},
      {"threads_busy", JsonOf(busy)},
      {"threads_active", JsonOf(active)},
      {"threads_max", JsonOf(max)},
      {"queue_depth", JsonOf(depth)},
      {"items_per_second",
       items_per_second.has_value() ? ordered_json(*items_per_second) : ordered_json()},
      {"p50_seconds", SecondsJson(p50)},
      {"p95_seconds", SecondsJson(p95)},
      {"p99_seconds", SecondsJson(p99)},
      {"wakeups_push", JsonOf(wakeups_push)},
      {"wakeups_safety", JsonOf(wakeups_safety)},
      {"wakeups_scheduled", JsonOf(wakeups_scheduled)},
      {"leases_lost", JsonOf(leases_lost)},
      {"handler_version", handler_version},
      {"trouble", trouble},
      {"last_heartbeat", Rfc3339(heard)},
      {"cpu_cores", cpu_cores},
      {"resident_bytes", resident_bytes},
  };
}

std::vector<WorkerView> ViewsOf(const Worker& worker,
                                const absl::StatusOr<v1::QueryStateResponse>& answer,
                                const std::string& job) {
  if (answer.ok()) return Asked(worker, *answer, job);
  // It has no listener for the job.
  if (absl::IsNotFound(answer.status())) return Asked(worker, {}, job);
  std::vector<WorkerView> views;
  for (const v1::JobLoad& load : worker.instance.heartbeat().jobs()) {
    if (job.empty() || load.job() == job) views.push_back(ViewFromHeartbeat(worker, load.job()));
  }
  if (views.empty() && job.empty()) views.push_back(ViewFromHeartbeat(worker, ""));
  for (WorkerView& view : views) view.phase = worker.serves() ? "no answer" : "leaving";
  return views;
}

}  // namespace muster::cli
