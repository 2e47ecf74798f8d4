// Controller: drains the partitions of a job's output queue and counts each result once (req. 3).
//
//   output queue ─► Receive × k ─► ReportStore::Commit (one transaction) ─► Delete
//
// A crash between commit and delete is a harmless duplicate: only the item's row in the report
// decides whether it counts. One thread; woken by triggers, with a slow safety check behind them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/blob/blob_store.h"
#include "muster/bus/trigger_bus.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/queue/queue_store.h"
#include "muster/report/report_store.h"

namespace muster::controller {

// What a controller works with. Nothing is owned; all of it outlives the controller.
struct Dependencies {
  queue::QueueStore* queues = nullptr;
  bus::TriggerBus* bus = nullptr;
  ledger::BatchRecords* ledger = nullptr;
  report::ReportStore* report = nullptr;
  blob::BlobStore* blobs = nullptr;
  base::Clock* clock = nullptr;
};

struct Options {
  std::vector<queue::QueueId> partitions;  // of the output queue, all owned by this controller
  uint64_t epoch = 1;                      // of that ownership; fences every commit
  std::string instance = "controller";
  int max_commit_results = 512;  // results that share one transaction
  // How long the first received result waits for others to share its transaction. It does not wait
  // if max_commit_results have been received or the received results complete a batch. A
  // transaction costs two syncs and touches most rows of the report, however few results it counts.
  absl::Duration linger = absl::Milliseconds(50);
  // The lease time of a received result. After a crash the result reappears only then, so keep it
  // short; a lease that lapses during a commit costs a duplicate, which is dropped.
  absl::Duration visibility = absl::Seconds(10);
  absl::Duration safety_check_interval = absl::Seconds(30);
};

// The host's callbacks. Called on the controller's thread, without locks held; they must return
// quickly.
struct Events {
  // Called after each commit, for each batch that the commit touched.
  std::function<void(const report::Progress&)> on_progress;
  // Called when every item of the batch is counted and its receipt is stored.
  std::function<void(uint64_t batch)> on_complete;
  // Called when a store failed in spite of retries and the controller has stopped. Only the host
  // knows whether another controller takes over, so the host logs it.
  std::function<void(const absl::Status&)> on_error;
};

// Thread-safe.
class Controller {
 public:
  static absl::StatusOr<std::unique_ptr<Controller>> Create(Options options, Events events,
                                                            Dependencies dependencies);
  virtual ~Controller() = default;  // Stop()s

  // Creates the partitions' queues if they are missing, and begins to drain.
  virtual absl::Status Start() = 0;

  // Call this when the batch was sealed, or may be complete for another reason: the controller
  // checks it soon, on its own thread, and calls on_complete if it is complete.
  virtual void CheckCompletion(uint64_t batch) = 0;

  // Finishes the current commit and stops. Safe to call twice and before Start.
  virtual void Stop() = 0;
};

}  // namespace muster::controller
