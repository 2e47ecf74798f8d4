// SPDX-License-Identifier: Apache-2.0

// WorkerService: turns the state of listeners into messages, and checks and applies changes.

#include "services/processor/worker_service.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "muster/base/proto_time.h"
#include "muster/base/quantity.h"
#include "muster/base/status.h"
#include "muster/listener/listener.h"
#include "muster/queue/limits.h"
#include "muster/rpc/server.h"
#include "muster/rpc/status.h"
#include "muster/v1/worker_service.pb.h"

namespace muster::processor {

namespace {

v1::ListenerMode ModeOf(listener::DispatchMode mode) {
  switch (mode) {
    case listener::DispatchMode::kPull:
      return v1::LISTENER_MODE_PULL;
    case listener::DispatchMode::kPush:
      return v1::LISTENER_MODE_PUSH;
  }
  return v1::LISTENER_MODE_UNSPECIFIED;
}

v1::ListenerPhase PhaseOf(listener::ListenerPhase phase) {
  switch (phase) {
    case listener::ListenerPhase::kListening:
      return v1::LISTENER_PHASE_LISTENING;
    case listener::ListenerPhase::kPaused:
      return v1::LISTENER_PHASE_PAUSED;
    case listener::ListenerPhase::kDraining:
      return v1::LISTENER_PHASE_DRAINING;
    case listener::ListenerPhase::kStopped:
      return v1::LISTENER_PHASE_STOPPED;
  }
  return v1::LISTENER_PHASE_UNSPECIFIED;
}

void FillOptions(const listener::ListenerOptions& options, v1::ListenerOptions* proto) {
  proto->set_dequeue_batch_size(options.dequeue_batch_size);
  *proto->mutable_minimum_idle_interval() = base::ToProto(options.minimum_idle_interval);
  *proto->mutable_maximum_idle_interval() = base::ToProto(options.maximum_idle_interval);
  proto->set_max_dequeue_tasks(options.max_dequeue_tasks);
}

void FillTotals(const listener::ListenerCounters& counters, v1::ListenerTotals* proto) {
  proto->set_messages_received(counters.messages_received);
  proto->set_redeliveries(counters.redeliveries);
  proto->set_messages_done(counters.messages_done);
  proto->set_messages_retried(counters.messages_retried);
  proto->set_messages_deferred(counters.messages_deferred);
  proto->set_messages_released(counters.messages_released);
  proto->set_dead_letters(counters.dead_letters);
  proto->set_leases_lost(counters.leases_lost);
  proto->set_storage_transactions(counters.storage_transactions());
  proto->set_wakeups_push(counters.wakeups_push);
  proto->set_wakeups_safety(counters.wakeups_safety);
  proto->set_wakeups_scheduled(counters.wakeups_scheduled);
}

// The state of a listener at `now`, which waits for a release if it is `parked`. Asks the store for
// the depth of each partition.
v1::ListenerState StateOf(const JobListener& served, absl::Time now, bool parked) {
  const listener::QueueListener& listener = *served.listener;
  const listener::ListenerOptions options = listener.options();
  const listener::ListenerInfo info = listener.QueryState();
  v1::ListenerState state;
  state.set_job(served.job);
  for (const queue::QueueId& partition : options.partitions) {
    state.add_partitions(partition.ToString());
  }
  state.set_mode(ModeOf(options.mode));
  const bool would_listen = listener.phase() == listener::ListenerPhase::kListening;
  state.set_phase(parked && would_listen ? v1::LISTENER_PHASE_PARKED : PhaseOf(listener.phase()));
  state.set_queue_depth(info.current_queue_depth);
  state.set_active_dequeue_tasks(info.active_dequeue_tasks);
  state.set_total_dequeue_tasks(info.total_dequeue_tasks);
  state.set_unsettled_messages(info.unsettled_messages);
  FillOptions(options, state.mutable_options());
  FillTotals(listener.counters(), state.mutable_totals());
  *state.mutable_taken() = base::ToProto(now);
  return state;
}

using listener::QueueListener;
using Violations = std::vector<rpc::FieldViolation>;

constexpr absl::Duration kMinIdleInterval = absl::Milliseconds(1);
constexpr absl::Duration kMaxIdleInterval = absl::Hours(1);
constexpr absl::Duration kDefaultGrace = absl::Seconds(30);
constexpr absl::Duration kMaxGrace = absl::Hours(24);

// OK if `violations` is empty; otherwise an InvalidArgument that names the fields.
absl::Status Refuse(const Violations& violations) {
  if (violations.empty()) return absl::OkStatus();
  const rpc::FieldViolation& first = violations.front();
  return rpc::WithViolations(
      absl::InvalidArgumentError(absl::StrCat(first.field, " ", first.description)), violations);
}

void CheckNumber(const std::string& field, int64_t value, int64_t low, int64_t high,
                 Violations* violations) {
  if (value >= low && value <= high) return;
  violations->push_back({field, absl::StrCat("is ", value, ", must be ", low, " to ", high)});
}

void CheckDuration(const std::string& field, const google::protobuf::Duration& value,
                   absl::Duration low, absl::Duration high, Violations* violations) {
  const absl::Duration duration = base::FromProto(value);
  if (duration >= low && duration <= high) return;
  violations->push_back(
      {field, absl::StrCat("is ", base::DurationToString(duration), ", must be ",
                           base::DurationToString(low), " to ", base::DurationToString(high))});
}

struct IdleIntervals {
  absl::Duration minimum;
  absl::Duration maximum;
};

// The intervals that `listener` will have after the change.
IdleIntervals NewIntervals(const QueueListener& listener, const v1::ListenerOptions& wanted) {
  const listener::ListenerOptions now = listener.options();
  return {wanted.has_minimum_idle_interval() ? base::FromProto(wanted.minimum_idle_interval())
                                             : now.minimum_idle_interval,
          wanted.has_maximum_idle_interval() ? base::FromProto(wanted.maximum_idle_interval())
                                             : now.maximum_idle_interval};
}

Violations CheckValues(const v1::ListenerOptions& wanted) {
  Violations violations;
  if (wanted.has_dequeue_batch_size()) {
    CheckNumber("options.dequeue_batch_size", wanted.dequeue_batch_size(), 1, queue::kMaxReceive,
                &violations);
  }
  if (wanted.has_minimum_idle_interval()) {
    CheckDuration("options.minimum_idle_interval", wanted.minimum_idle_interval(), kMinIdleInterval,
                  kMaxIdleInterval, &violations);
  }
  if (wanted.has_maximum_idle_interval()) {
    CheckDuration("options.maximum_idle_interval", wanted.maximum_idle_interval(), kMinIdleInterval,
                  kMaxIdleInterval, &violations);
  }
  if (wanted.has_max_dequeue_tasks()) {
    CheckNumber("options.max_dequeue_tasks", wanted.max_dequeue_tasks(), 1,
                listener::kMaxDequeueTasks, &violations);
  }
  return violations;
}

bool SetsIntervals(const v1::ListenerOptions& wanted) {
  return wanted.has_minimum_idle_interval() || wanted.has_maximum_idle_interval();
}

// Checks the requested intervals together with those that stay as they are.
Violations CheckIntervals(const std::vector<JobListener>& served,
                          const v1::ListenerOptions& wanted) {
  if (!SetsIntervals(wanted)) return {};
  for (const JobListener& one : served) {
    const IdleIntervals intervals = NewIntervals(*one.listener, wanted);
    if (intervals.minimum <= intervals.maximum) continue;
    const char* const field = wanted.has_minimum_idle_interval() ? "options.minimum_idle_interval"
                                                                 : "options.maximum_idle_interval";
    return {{field, absl::StrCat("makes the minimum ", base::DurationToString(intervals.minimum),
                                 " and the maximum ", base::DurationToString(intervals.maximum),
                                 " of job ", one.job)}};
  }
  return {};
}

// Applies values that have been checked.
absl::Status Apply(QueueListener& listener, const v1::ListenerOptions& wanted) {
  if (wanted.has_dequeue_batch_size()) {
    MUSTER_RETURN_IF_ERROR(listener.SetDequeueBatchSize(wanted.dequeue_batch_size()));
  }
  if (SetsIntervals(wanted)) {
    const IdleIntervals intervals = NewIntervals(listener, wanted);
    MUSTER_RETURN_IF_ERROR(listener.SetIdleIntervals(intervals.minimum, intervals.maximum));
  }
  if (wanted.has_max_dequeue_tasks())
    return listener.SetMaxDequeueTasks(wanted.max_dequeue_tasks());
  return absl::OkStatus();
}

absl::Status CheckListens(const JobListener& served) {
  switch (served.listener->phase()) {
    case listener::ListenerPhase::kListening:
      return absl::OkStatus();
    case listener::ListenerPhase::kPaused:
      return absl::FailedPreconditionError(
          absl::StrCat("the listener of job ", served.job, " is paused"));
    case listener::ListenerPhase::kDraining:
    case listener::ListenerPhase::kStopped:
      break;
  }
  return absl::FailedPreconditionError(
      absl::StrCat("the listener of job ", served.job, " stops, or has stopped"));
}

absl::Status CheckUnparked(absl::string_view release) {
  if (release.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("the processor is parked until release '",
                                                    release, "'; `muster release ", release,
                                                    "` lets it go"));
}

int64_t ReleasedBy(const std::vector<JobListener>& served) {
  int64_t released = 0;
  for (const JobListener& one : served) released += one.listener->counters().messages_released;
  return released;
}

}  // namespace

absl::StatusOr<WorkerService::Served> WorkerService::Find(const std::string& job) {
  Served all = listeners_->Listeners();
  if (job.empty()) return all;
  const auto is_other = [&job](const JobListener& served) { return served.job != job; };
  all.erase(std::remove_if(all.begin(), all.end(), is_other), all.end());
  if (!all.empty()) return all;
  return absl::NotFoundError(absl::StrCat("this processor has no listener for job '", job, "'"));
}

void WorkerService::Report(const Served& served,
                           google::protobuf::RepeatedPtrField<v1::ListenerState>* states) const {
  const bool parked = !listeners_->ParkedFor().empty();
  for (const JobListener& one : served) *states->Add() = StateOf(one, clock_->Now(), parked);
}

grpc::Status WorkerService::QueryState(grpc::ServerContext* context,
                                       const v1::QueryStateRequest* request,
                                       v1::QueryStateResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(const Served served, Find(request->job()));
    Report(served, response->mutable_listeners());
    return absl::OkStatus();
  });
}

grpc::Status WorkerService::StartListener(grpc::ServerContext* context,
                                          const v1::StartListenerRequest* request,
                                          v1::StartListenerResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    Violations violations;
    CheckNumber("thread_count", request->thread_count(), 1, listener::kMaxDequeueTasks,
                &violations);
    MUSTER_RETURN_IF_ERROR(Refuse(violations));
    MUSTER_ASSIGN_OR_RETURN(const Served served, Find(request->job()));
    MUSTER_RETURN_IF_ERROR(CheckUnparked(listeners_->ParkedFor()));
    for (const JobListener& one : served) MUSTER_RETURN_IF_ERROR(CheckListens(one));
    for (const JobListener& one : served) {
      MUSTER_RETURN_IF_ERROR(base::Annotate(one.listener->StartListener(request->thread_count()),
                                            absl::StrCat("job ", one.job)));
    }
    Report(served, response->mutable_listeners());
    return absl::OkStatus();
  });
}

grpc::Status WorkerService::SetOptions(grpc::ServerContext* context,
                                       const v1::SetOptionsRequest* request,
                                       v1::SetOptionsResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_RETURN_IF_ERROR(Refuse(CheckValues(request->options())));
    MUSTER_ASSIGN_OR_RETURN(const Served served, Find(request->job()));
    base::MutexLock lock(&options_mu_);
    MUSTER_RETURN_IF_ERROR(Refuse(CheckIntervals(served, request->options())));
    for (const JobListener& one : served) {
      MUSTER_RETURN_IF_ERROR(Apply(*one.listener, request->options()));
    }
    Report(served, response->mutable_listeners());
    return absl::OkStatus();
  });
}

grpc::Status WorkerService::Pause(grpc::ServerContext* context, const v1::PauseRequest* request,
                                  v1::PauseResponse*) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(const Served served, Find(request->job()));
    for (const JobListener& one : served) {
      listeners_->NotePause(one.job, request->for_lack_of_work());
      one.listener->Pause();
    }
    return absl::OkStatus();
  });
}

grpc::Status WorkerService::Resume(grpc::ServerContext* context, const v1::ResumeRequest* request,
                                   v1::ResumeResponse*) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_ASSIGN_OR_RETURN(const Served served, Find(request->job()));
    for (const JobListener& one : served) one.listener->Resume();
    return absl::OkStatus();
  });
}

grpc::Status WorkerService::Drain(grpc::ServerContext* context, const v1::DrainRequest* request,
                                  v1::DrainResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    absl::Duration grace = kDefaultGrace;
    if (request->has_grace()) {
      Violations violations;
      CheckDuration("grace", request->grace(), absl::ZeroDuration(), kMaxGrace, &violations);
      MUSTER_RETURN_IF_ERROR(Refuse(violations));
      grace = base::FromProto(request->grace());
    }
    MUSTER_RETURN_IF_ERROR(Find(request->job()).status());
    // Retire first: from here on no listener is replaced, so Find sees the final ones.
    listeners_->Retire(request->job());
    MUSTER_ASSIGN_OR_RETURN(const Served served, Find(request->job()));
    const int64_t before = ReleasedBy(served);
    MUSTER_RETURN_IF_ERROR(StopAll(served, grace));
    response->set_messages_released(ReleasedBy(served) - before);
    return absl::OkStatus();
  });
}

}  // namespace muster::processor
