// The bounds of a processor as a service, with their reasons.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/blob/blob_store.h"
#include "muster/bus/trigger_bus.h"
#include "muster/handler/handler.h"
#include "muster/item/cancelled_batches.h"
#include "muster/job/job.h"
#include "muster/listener/listener.h"
#include "muster/queue/queue_store.h"
#include "services/processor/item_worker.h"

namespace muster::processor {

// Between two looks at the jobs that nothing triggered: a change whose event was lost waits so
// long.
inline constexpr absl::Duration kLookInterval = absl::Seconds(30);

// Earlier revisions that are kept at hand, with their pools of handlers. Batches that are open at a
// time are bound to fewer; the one that was asked for least lately makes room.
inline constexpr size_t kMaxRevisions = 64;
// A revision that was not found is not looked for again so soon: each item of its batch asks.
inline constexpr absl::Duration kMissingRevisionFor = absl::Seconds(10);

// Workers of one job; each is a thread. As a listener has it at the most.
inline constexpr int kMaxThreads = 1000;

// The processor: workers that take work items from the partitions of a job's input queue, run the
// job's handler on them and put the results into its output queue (req. 2).

// What a processor works with. Nothing is owned; all outlives it.
struct Dependencies {
  queue::QueueStore* queues = nullptr;
  bus::TriggerBus* bus = nullptr;
  blob::BlobStore* blobs = nullptr;
  base::Clock* clock = nullptr;
  // Batches whose items are taken and not worked on; null: there are none.
  item::CancelledBatches* cancelled = nullptr;
};

struct Options {
  std::string account;
  std::string instance = "processor";
  // Begun work is finished when the processor stops, if that takes no longer than the grace;
  // otherwise handlers are told at once that it stops, and may give it back.
  bool stops_patiently = false;
  int threads = 1;                                           // workers at most
  absl::Duration safety_check_interval = absl::Seconds(30);  // between looks that nothing triggered
  // Makes handlers that run in a process of their own. An item whose worker died with it is worked
  // on by one of these, and dies alone if it kills that, too. Empty: it is worked on like others.
  handler::HandlerFactory isolated_handlers;
  // For items of other revisions of the job, which batches from before it was replaced may still
  // have; null: they are left to other processors. Not owned.
  RevisionSource* revisions = nullptr;
  // Input partitions that are read at least, because an earlier definition had more of them.
  int min_partitions = 0;
};

// Thread-safe.
class Processor {
 public:
  // `job` is not owned. Makes one handler to see that handler and job fit: what the factory refuses
  // is refused here, before anything runs. Handlers live as long as the processor: a worker that
  // leaves for lack of work gives its handler back for later ones.
  static absl::StatusOr<std::unique_ptr<Processor>> Create(const job::JobDefinition* job,
                                                           const handler::HandlerFactory& handlers,
                                                           std::string handler_version,
                                                           const Dependencies& dependencies,
                                                           const Options& options);

  absl::Status Start();
  // See QueueListener::Stop.
  absl::Status Stop(absl::Duration grace);

  // Since this processor was made; an item that is processed twice counts twice.
  uint64_t transactions_processed() const { return setup_.transactions_processed; }

  const std::string& handler_version() const { return setup_.handler_version; }

  listener::QueueListener& listener() { return *listener_; }

 private:
  Processor() = default;

  WorkerSetup setup_;
  std::unique_ptr<listener::QueueListener> listener_;  // uses setup_
};

}  // namespace muster::processor
