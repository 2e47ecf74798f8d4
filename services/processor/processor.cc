// SPDX-License-Identifier: Apache-2.0
#include "services/processor/processor.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "muster/base/status.h"
#include "muster/handler/pool.h"
#include "muster/item/queue_names.h"
#include "muster/item/result_codec.h"

namespace muster::processor {
namespace {

listener::ListenerOptions ListenerOptionsOf(const job::JobDefinition& job, const Options& options) {
  listener::ListenerOptions listener;
  listener.partitions = item::InputQueues(options.account, job.name,
                                          std::max(job.queue.partitions, options.min_partitions));
  listener.output_queue = item::OutputQueue(options.account, job.name, 0);
  listener.pack_outputs = item::PackResults;
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
  processor->absent_ = std::make_unique<AbsentContent>(dependencies.clock, options.health);
  processor->setup_.content = dependencies.content;
  processor->setup_.absent = processor->absent_.get();
  processor->setup_.isolated = options.isolated_handlers;
  processor->setup_.revisions = options.revisions;
  processor->setup_.cancelled = dependencies.cancelled;
  processor->setup_.clock = dependencies.clock;
  processor->setup_.slow_items = dependencies.slow_items;
  processor->setup_.health = options.health;
  processor->setup_.suspended = dependencies.suspended;
  processor->setup_.is_over = dependencies.is_over;
  processor->setup_.metrics = ItemMetrics(dependencies.metrics, job->name);
  if (options.restarts != nullptr) {
    CountRestarts(dependencies.metrics, job->name, options.restarts.get());
  }
  processor->setup_.spans = dependencies.spans;
  const WorkerSetup* const setup = &processor->setup_;
  // A worker ends after a second without work; the pool keeps its handler, and the handler's
  // program, for the next worker.
  const handler::HandlerFactory lend = processor->lend_ = handler::PooledHandlers(handlers);
  MUSTER_RETURN_IF_ERROR(lend(setup->schema).status());
  const auto subscribers = [setup,
                            lend]() -> absl::StatusOr<std::unique_ptr<listener::Subscriber>> {
    const absl::Duration began = setup->clock->Monotonic();
    MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<handler::Handler> handler, lend(setup->schema));
    setup->starting_nanoseconds += absl::ToInt64Nanoseconds(setup->clock->Monotonic() - began);
    return std::make_unique<ItemWorker>(setup, std::move(handler));
  };
  processor->owner_group_ = OwnerGroupOf(options.account, job->name,
                                         std::max(job->queue.partitions, options.min_partitions));
  MUSTER_RETURN_IF_ERROR(processor->MakeListener(options, subscribers, dependencies));
  return processor;
}

// The pool keeps as many handlers as were lent at the same time.
void Processor::Warm(int workers, absl::FunctionRef<bool()> goes_on) {
  std::vector<std::unique_ptr<handler::Handler>> lent;
  while (static_cast<int>(lent.size()) < workers && goes_on()) {
    absl::StatusOr<std::unique_ptr<handler::Handler>> handler = lend_(setup_.schema);
    if (!handler.ok()) return;
    lent.push_back(*std::move(handler));
  }
}

absl::Status Processor::MakeListener(const Options& options,
                                     listener::QueueListener::SubscriberFactory subscribers,
                                     const Dependencies& dependencies) {
  listener::ListenerOptions listener = ListenerOptionsOf(*setup_.job, options);
  partitions_ = static_cast<int>(listener.partitions.size());
  if (!setup_.job->order_by.has_value()) {
    listener::ListenerEvents events;
    events.on_no_task = options.on_no_worker;
    MUSTER_ASSIGN_OR_RETURN(
        listener_, listener::QueueListener::Create(std::move(listener), std::move(events),
                                                   std::move(subscribers), dependencies.queues,
                                                   dependencies.bus, dependencies.clock));
    return absl::OkStatus();
  }
  MUSTER_ASSIGN_OR_RETURN(
      auto ordered,
      listener::OrderedListener::Create(
          std::move(listener),
          [](const queue::Message& message) { return item::OrderKeyIn(message.body); },
          std::move(subscribers), dependencies.queues, dependencies.bus, dependencies.clock));
  if (setup_.job->on_poison == job::OnPoison::kHold) {
    sync::OptimisticSyncStore* const records =
        dependencies.held_keys != nullptr ? dependencies.held_keys : dependencies.sync;
    if (records == nullptr) {
      return absl::FailedPreconditionError("on_poison: hold needs a store for the held keys");
    }
    holds_ =
        std::make_unique<JobKeyHolds>(ordered->options().partitions,
                                      JobKeyHolds::Dependencies{.sync = records,
                                                                .queues = dependencies.queues,
                                                                .cancelled = dependencies.cancelled,
                                                                .clock = dependencies.clock});
    ordered->SetHolds(holds_.get());
  }
  ordered_ = std::make_unique<OrderedPartitions>(ordered.get(), dependencies.sync,
                                                 dependencies.clock, dependencies.metrics);
  // Runs at the first Stop of the listener, by any caller. No work runs any more then, so the next
  // owners of the partitions may begin at once.
  ordered->SetOnNoTask(options.on_no_worker);
  ordered->SetOnStopped([this] { ordered_->Stop(); });
  listener_ = std::move(ordered);
  return absl::OkStatus();
}

absl::Status Processor::Start() {
  MUSTER_RETURN_IF_ERROR(listener_->Start());
  if (ordered_ == nullptr) return absl::OkStatus();
  return ordered_->Start(owner_group_, setup_.instance, partitions_);
}

absl::Status Processor::Stop(absl::Duration grace) { return listener_->Stop(grace); }

}  // namespace muster::processor
