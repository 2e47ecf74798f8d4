// SPDX-License-Identifier: Apache-2.0

// Controller: drains the partitions of a job's output queue and counts each result once.
//
//   output queue ─► Receive × k ─► ReportStore::Commit (one transaction) ─► Delete
//
// A crash between commit and delete is a harmless duplicate: only the item's row in the report
// decides whether it counts. One thread; woken by triggers, with a slow safety check behind them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/lru_map.h"
#include "muster/base/mutex.h"
#include "muster/blob/blob_store.h"
#include "muster/bus/trigger_bus.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/queue/queue_store.h"
#include "muster/report/report_store.h"
#include "muster/telemetry/registry.h"
#include "muster/telemetry/span.h"

namespace muster::controller {

class ResultCounter;

// What a controller works with. Nothing is owned; all of it outlives the controller.
struct Dependencies {
  queue::QueueStore* queues = nullptr;
  bus::TriggerBus* bus = nullptr;
  ledger::BatchRecords* ledger = nullptr;
  report::ReportStore* report = nullptr;
  blob::BlobStore* blobs = nullptr;
  base::Clock* clock = nullptr;
  telemetry::Registry* metrics = nullptr;  // null: nothing is measured
  telemetry::SpanSink* spans = nullptr;    // null: batches are not traced
};

struct Options {
  std::vector<queue::QueueId> partitions;  // of the output queue, all owned by this controller
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
  // How long results wait while every known initiator answers that it does not have their batch.
  // Then they are poison. An initiator that comes back later with the batch has the items worked on
  // once more: their results have left the queue, and they have no row.
  absl::Duration unknown_batch_grace = absl::Minutes(10);
};

// The host's callbacks. Called on the controller's thread, without locks held, but for on_progress;
// they must return quickly.
struct Events {
  // Called after each commit, for each batch that the commit touched, by several threads at a time.
  std::function<void(const report::Progress&)> on_progress;
  // Called when every item of the batch is counted and its receipt is stored.
  std::function<void(uint64_t batch)> on_complete;
  // Called when a store failed in spite of retries and the controller has stopped. Only the host
  // knows whether another controller takes over, so the host logs it.
  std::function<void(const absl::Status&)> on_error;
};

// Thread-safe.
class Controller final {
 public:
  static absl::StatusOr<std::unique_ptr<Controller>> Create(Options options, Events events,
                                                            Dependencies dependencies);
  ~Controller();  // Stop()s

  // Creates the partitions' queues if they are missing, and begins to drain.
  absl::Status Start() ABSL_LOCKS_EXCLUDED(mu_);

  // Call this when the batch was sealed, or may be complete for another reason: the controller
  // checks it soon, on its own thread, and calls on_complete if it is complete. Aborted: what kept
  // the batch from its receipt when it was checked before; it is checked again all the same.
  absl::Status CheckCompletion(uint64_t batch) ABSL_LOCKS_EXCLUDED(mu_);

  // The batch is registered, and its first results may be on their way: the controller asks its
  // ledger meanwhile for what it holds them against. Returns at once; a batch that is expected
  // while too many others are is not prepared for.
  void Expect(uint64_t batch) ABSL_LOCKS_EXCLUDED(mu_);

  // Finishes the current commit and stops. Safe to call twice and before Start.
  void Stop() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  Controller(Options options, Events events, Dependencies dependencies);

  void OnTrigger(const bus::InterRoleCommunicationEvent& event) ABSL_LOCKS_EXCLUDED(mu_);
  void Run() ABSL_LOCKS_EXCLUDED(mu_);
  // Gathers and counts results until the partitions are empty, then sleeps in AwaitWork.
  absl::Status Turn() ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status Gather() ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<bool> IsTimeToCount(absl::Duration since) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status CountAll() ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status CheckAsked() ABSL_LOCKS_EXCLUDED(mu_);
  // Prepares for the batches that are expected.
  void PrepareOneExpected() ABSL_LOCKS_EXCLUDED(mu_);
  // Sleeps until a trigger, a CheckCompletion or the safety check; prepares meanwhile.
  void AwaitWork() ABSL_LOCKS_EXCLUDED(mu_);
  // Whether more results may be there before the deadline.
  bool AwaitMore(absl::Duration deadline) ABSL_LOCKS_EXCLUDED(mu_);
  bool HandIsEmpty() const;

  const Options options_;
  const Events events_;
  const Dependencies deps_;
  std::stop_source stop_;
  // One per partition; used by the controller's own thread only.
  std::vector<std::unique_ptr<ResultCounter>> counters_;

  base::Mutex mu_;
  base::CondVar wake_;
  bool work_detected_ ABSL_GUARDED_BY(mu_) = true;  // look once at the start
  std::set<uint64_t> asked_ ABSL_GUARDED_BY(mu_);
  std::set<uint64_t> expected_ ABSL_GUARDED_BY(mu_);
  // Those of batches that are asked for no more are forgotten.
  static constexpr size_t kMaxTroubles = 1000;
  // What kept batches from their receipts at their last check; CheckCompletion takes it out.
  base::LruMap<uint64_t, absl::Status> troubles_ ABSL_GUARDED_BY(mu_){kMaxTroubles};
  std::unique_ptr<bus::TriggerBus::Subscription> subscription_;
  std::thread thread_;
};

}  // namespace muster::controller
