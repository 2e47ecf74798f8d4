#include "services/processor/listener_state.h"

#include "muster/base/proto_time.h"

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

}  // namespace

v1::ListenerState StateOf(const JobListener& served, absl::Time now) {
  const listener::QueueListener& listener = *served.listener;
  const listener::ListenerOptions options = listener.options();
  const listener::ListenerInfo info = listener.QueryState();
  v1::ListenerState state;
  state.set_job(served.job);
  for (const queue::QueueId& partition : options.partitions) {
    state.add_partitions(partition.ToString());
  }
  state.set_mode(ModeOf(options.mode));
  state.set_phase(PhaseOf(listener.phase()));
  state.set_queue_depth(info.current_queue_depth);
  state.set_active_dequeue_tasks(info.active_dequeue_tasks);
  state.set_total_dequeue_tasks(info.total_dequeue_tasks);
  state.set_unsettled_messages(info.unsettled_messages);
  FillOptions(options, state.mutable_options());
  FillTotals(listener.counters(), state.mutable_totals());
  *state.mutable_taken() = base::ToProto(now);
  return state;
}

}  // namespace muster::processor
