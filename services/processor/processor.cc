#include "services/processor/processor.h"

#include <algorithm>
#include <utility>

#include "muster/base/status.h"
#include "muster/handler/pool.h"
#include "muster/item/queue_names.h"
#include "services/processor/result_codec.h"

namespace muster::processor {
namespace {

listener::ListenerOptions ListenerOptionsOf(const job::JobDefinition& job, const Options& options) {
  listener::ListenerOptions listener;
  listener.partitions = item::InputQueues(options.account, job.name,
                                          std::max(job.queue.partitions, options.min_partitions));
  listener.output_queue = item::OutputQueue(options.account, job.name, 0);
  listener.pack_outputs = PackResults;
  listener.instance = options.instance;
  listener.visibility = job.queue.visibility.value_or(listener.visibility);
  listener.max_attempts = job.queue.max_attempts;
  listener.max_dequeue_tasks = options.threads;
  listener.stops_patiently = options.stops_patiently;
  listener.safety_check_interval = options.safety_check_interval;
  return listener;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Processor>> Processor::Create(
    const job::JobDefinition* job, const handler::HandlerFactory& handlers,
    std::string handler_version, const Dependencies& dependencies, const Options& options) {
  std::unique_ptr<Processor> processor(new Processor);
  processor->setup_.job = job;
  processor->setup_.schema = job->schema();
  processor->setup_.handler_version = std::move(handler_version);
  processor->setup_.instance = options.instance;
  processor->setup_.blobs = dependencies.blobs;
  processor->setup_.isolated = options.isolated_handlers;
  processor->setup_.revisions = options.revisions;
  processor->setup_.cancelled = dependencies.cancelled;
  processor->setup_.clock = dependencies.clock;
  processor->setup_.slow_items = dependencies.slow_items;
  processor->setup_.health = options.health;
  processor->setup_.suspended = dependencies.suspended;
  processor->setup_.is_over = dependencies.is_over;
  const WorkerSetup* const setup = &processor->setup_;
  // A worker ends after a second without work; the pool keeps its handler, and the handler's
  // program, for the next worker.
  const handler::HandlerFactory lend = handler::PooledHandlers(handlers);
  MUSTER_RETURN_IF_ERROR(lend(setup->schema).status());
  const auto subscribers = [setup,
                            lend]() -> absl::StatusOr<std::unique_ptr<listener::Subscriber>> {
    MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<handler::Handler> handler, lend(setup->schema));
    return std::make_unique<ItemWorker>(setup, std::move(handler));
  };
  MUSTER_ASSIGN_OR_RETURN(
      processor->listener_,
      listener::QueueListener::Create(ListenerOptionsOf(*job, options), {}, subscribers,
                                      dependencies.queues, dependencies.bus, dependencies.clock));
  return processor;
}

absl::Status Processor::Start() { return listener_->Start(); }

absl::Status Processor::Stop(absl::Duration grace) { return listener_->Stop(grace); }

}  // namespace muster::processor
