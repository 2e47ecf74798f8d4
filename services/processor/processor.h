// SPDX-License-Identifier: Apache-2.0

// Processor: the workers of one job. The bounds of a processor as a service come first, with their
// reasons.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/blob/blob_store.h"
#include "muster/bus/trigger_bus.h"
#include "muster/content/item_content.h"
#include "muster/handler/handler.h"
#include "muster/item/cancelled_batches.h"
#include "muster/item/suspended_batches.h"
#include "muster/job/job.h"
#include "muster/listener/listener.h"
#include "muster/queue/queue_store.h"
#include "muster/sync/optimistic_sync_store.h"
#include "muster/telemetry/registry.h"
#include "muster/telemetry/span.h"
#include "services/processor/item_worker.h"
#include "services/processor/job_key_holds.h"
#include "services/processor/ordered_partitions.h"

namespace muster::processor {

// Between two looks at the jobs without a trigger: the processor notices a change whose event was
// lost after this time.
inline constexpr absl::Duration kLookInterval = absl::Seconds(30);

// Earlier revisions that the processor keeps, with their pools of handlers. The batches that are
// open at a time are bound to fewer. A full cache drops the revision that was asked for least
// recently.
inline constexpr size_t kMaxRevisions = 64;
// How long the processor remembers that a revision was not found: each item of its batch asks for
// it.
inline constexpr absl::Duration kMissingRevisionFor = absl::Seconds(10);

// The most workers of one job, each a thread: the limit of a listener.
inline constexpr int kMaxThreads = 1000;

// The processor: workers that take work items from the partitions of a job's input queue, run the
// job's handler on them and put the results into its output queue.

// What a processor works with. Nothing is owned; all of it outlives the processor.
struct Dependencies {
  queue::QueueStore* queues = nullptr;
  bus::TriggerBus* bus = nullptr;
  blob::BlobStore* blobs = nullptr;
  base::Clock* clock = nullptr;
  // The content of items that travels by reference; null: other processors take those items.
  content::ItemContent* content = nullptr;
  // Cancelled batches, whose items are taken and dropped; null: there are none.
  item::CancelledBatches* cancelled = nullptr;
  SlowItems* slow_items = nullptr;  // warns of slow handlers; null: no warning is given
  // Suspended batches, whose items are dropped if no worker here fits; null: they are given back.
  item::SuspendedBatches* suspended = nullptr;
  // Whether a batch is complete or cancelled, so that nothing needs an item of it that cannot be
  // read; ledger::UnknownToAll as ledger::BatchRecords. Empty: such an item is given up.
  std::function<absl::StatusOr<bool>(uint64_t batch)> is_over = nullptr;
  telemetry::Registry* metrics = nullptr;  // null: nothing is measured
  telemetry::SpanSink* spans = nullptr;    // null: batches are not traced
  // Where the processors of a mesh share the partitions of jobs with order_by; null: this is the
  // only processor of the queues.
  sync::OptimisticSyncStore* sync = nullptr;
  // Where the keys are recorded that jobs with `on_poison: hold` hold; null: the same as `sync`.
  sync::OptimisticSyncStore* held_keys = nullptr;
};

struct Options {
  std::string account;
  std::string instance = "processor";
  // True: when the processor stops, it finishes the work that it has begun, within the grace.
  // False: it tells the handlers at once that it stops, and they may give their work back.
  bool stops_patiently = false;
  int threads = 1;                                           // workers at most
  absl::Duration safety_check_interval = absl::Seconds(30);  // between looks that nothing triggered
  // Makes handlers that run in a process of their own. Such a handler works on an item whose worker
  // died with it: if the item kills that process, too, no other item suffers. Empty: such an item
  // is worked on like others.
  handler::HandlerFactory isolated_handlers;
  // Where slow calls of the handlers are noted; null: nowhere.
  std::shared_ptr<handler::HealthTroubles> health = nullptr;
  // Where the handlers note their restarts, which are counted; null: nowhere.
  std::shared_ptr<handler::Restarts> restarts = nullptr;
  // Items wait, no worker runs, and the system has no thread for one: see
  // ListenerEvents::on_no_task, and OrderedListener's. Empty: it is logged, and the processor tries
  // again.
  std::function<void(const absl::Status&)> on_no_worker;
  // Finds other revisions of the job, to which batches from before its last change are bound; null:
  // other processors take their items. Not owned.
  RevisionSource* revisions = nullptr;
  // Reads at least so many input partitions, because an earlier definition may have had more of
  // them.
  int min_partitions = 0;
};

// Of a job with order_by, a processor works on the partitions that it owns (ordered_partitions.h);
// other jobs' processors compete for all.
//
// Thread-safe.
class Processor {
 public:
  // `job` is not owned. Makes one handler to check that handler and job fit: an error of the
  // factory is answered here, before anything runs. Handlers live as long as the processor: a
  // worker that ends for lack of work leaves its handler to later workers.
  static absl::StatusOr<std::unique_ptr<Processor>> Create(const job::JobDefinition* job,
                                                           const handler::HandlerFactory& handlers,
                                                           std::string handler_version,
                                                           const Dependencies& dependencies,
                                                           const Options& options);

  // Makes handlers for so many workers, and keeps them for the first ones, so that these need not
  // wait for programs that start. Ends early when `goes_on` answers false, which it is asked before
  // each handler, or with the first error, which a worker will meet again.
  void Warm(int workers, absl::FunctionRef<bool()> goes_on);

  absl::Status Start();
  // See QueueListener::Stop.
  absl::Status Stop(absl::Duration grace);

  // Counted since this processor was made; an item that is processed twice counts twice.
  uint64_t transactions_processed() const { return setup_.transactions_processed; }

  // Time in which workers have made their handlers.
  absl::Duration starting() const { return absl::Nanoseconds(setup_.starting_nanoseconds.load()); }

  const std::string& handler_version() const { return setup_.handler_version; }

  listener::QueueListener& listener() { return *listener_; }

 private:
  Processor() = default;

  absl::Status MakeListener(const Options& options,
                            listener::QueueListener::SubscriberFactory subscribers,
                            const Dependencies& dependencies);

  std::unique_ptr<AbsentContent> absent_;
  handler::HandlerFactory lend_;  // from a pool
  WorkerSetup setup_;             // uses absent_
  // Of a job with order_by; the listener and it use each other, and the listener stops first.
  std::unique_ptr<OrderedPartitions> ordered_;
  std::unique_ptr<JobKeyHolds> holds_;                 // of one with `on_poison: hold`
  std::unique_ptr<listener::QueueListener> listener_;  // uses setup_ and holds_
  std::string owner_group_;
  int partitions_ = 0;
};

}  // namespace muster::processor
