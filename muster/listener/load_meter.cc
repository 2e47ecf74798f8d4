// SPDX-License-Identifier: Apache-2.0
#include "muster/listener/load_meter.h"

#include <algorithm>

#include "muster/base/proto_time.h"

namespace muster::listener {
namespace {

void FillThreads(const ListenerLoad& load, const WorkTimes& before, v1::JobLoad* proto) {
  proto->set_threads_max(load.max_dequeue_tasks);
  proto->set_threads(load.times.tasks);
  proto->set_threads_busy(load.times.busy_tasks);
  const absl::Duration running = load.times.running - before.running;
  if (running <= absl::ZeroDuration()) return;
  const double share = absl::FDivDuration(load.times.busy - before.busy, running);
  proto->set_busy_share(std::clamp(share, 0.0, 1.0));
}

void FillServiceTime(const ServiceTimes& times, v1::JobLoad* proto) {
  if (times.count() == 0) return;
  v1::ServiceTime& service = *proto->mutable_service_time();
  *service.mutable_mean() = base::ToProto(times.Mean());
  *service.mutable_p50() = base::ToProto(times.Percentile(0.50));
  *service.mutable_p95() = base::ToProto(times.Percentile(0.95));
  *service.mutable_p99() = base::ToProto(times.Percentile(0.99));
}

void FillCounts(const ListenerCounters& now, const ListenerCounters& before, v1::JobLoad* proto) {
  proto->set_attempts(now.attempts - before.attempts);
  proto->set_retries(now.messages_retried - before.messages_retried);
  proto->set_deferrals(now.messages_deferred - before.messages_deferred);
  proto->set_dead_letters(now.dead_letters - before.dead_letters);
  proto->set_leases_lost(now.leases_lost - before.leases_lost);
  proto->set_wakeups_push(now.wakeups_push - before.wakeups_push);
  proto->set_wakeups_safety(now.wakeups_safety - before.wakeups_safety);
  proto->set_wakeups_scheduled(now.wakeups_scheduled - before.wakeups_scheduled);
}

void FillPartitions(const ListenerLoad& load, v1::JobLoad* proto) {
  for (const PartitionSeen& seen : load.partitions) {
    v1::PartitionLoad& partition = *proto->add_partitions();
    partition.set_queue(seen.queue.ToString());
    partition.set_ready(seen.ready);
    partition.set_unsettled(seen.leased_messages);
    *partition.mutable_oldest_age() = base::ToProto(seen.oldest_age);
  }
}

int64_t Finished(const ListenerCounters& counters) {
  return counters.messages_done + counters.dead_letters;
}

}  // namespace

v1::JobLoad LoadMeter::Measure(ObservedLoad now, absl::Duration window) {
  const WorkTimes& times = before_.load.times;
  v1::JobLoad proto;
  proto.set_job(job_);
  FillThreads(now.load, times, &proto);
  FillServiceTime(now.load.times.service.Since(times.service), &proto);
  FillCounts(now.counters, before_.counters, &proto);
  FillPartitions(now.load, &proto);
  if (window > absl::ZeroDuration()) {
    const double seconds = absl::ToDoubleSeconds(window);
    const int64_t items = Finished(now.counters) - Finished(before_.counters);
    proto.set_items_per_second(static_cast<double>(items) / seconds);
    proto.set_transactions_per_second(static_cast<double>(now.transactions - before_.transactions) /
                                      seconds);
  }
  before_ = std::move(now);
  return proto;
}

}  // namespace muster::listener
