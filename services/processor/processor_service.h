// SPDX-License-Identifier: Apache-2.0

// ProcessorService: works for the jobs of a mesh, and follows their changes.
//
//   registry ─► look ─┬─ new job ─────────► a Processor is created and started
//      ▲              ├─ changed ─────────► a new one starts, then the old one is drained
//   JobChangedEvent,  ├─ deleted ─────────► drained
//   or every so often └─ no handler here ─► left to other processors
//
// A handler that is a gRPC server may refuse a job. The service then drains the job's Processor,
// and the next look makes another one.
//
// With `standby` it is parked at first: it follows the jobs, makes their Processors and the
// handlers of their workers, and starts no listener before Unpark.
//
// If a job changes, the old or the new Processor works on each item with the revision that its
// batch is bound to (RevisionCache).
#pragma once

#include <future>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/handler/handler.h"
#include "muster/job/job_registry.h"
#include "services/processor/job_handler.h"
#include "services/processor/job_listeners.h"
#include "services/processor/job_troubles.h"
#include "services/processor/pool_metrics.h"
#include "services/processor/processor.h"
#include "services/processor/revision_cache.h"
#include "services/processor/slow_items.h"

namespace muster::processor {

// The workers of one job, separate from those of other jobs.
struct JobPool {
  std::string job;
  int threads = 0;  // at most; 0: ServiceOptions::threads
};

struct ServiceOptions {
  std::string account;
  std::string instance = "processor";
  std::vector<JobPool> pools;  // works for these jobs only, none of them twice; empty: for all
  int threads = 1;             // the most workers of a job without a number in `pools`
  absl::Duration look_interval = kLookInterval;
  // The release for which the service waits before any listener takes a message (Unpark). Empty: it
  // does not wait.
  std::string standby = "";
  // Initiators send the content of items even where their files are on this host.
  bool content_from_initiator = false;
  // How long the handlers of a job that has changed or was deleted may take to finish.
  absl::Duration drain_grace = absl::Seconds(30);
  // The service sets its `instance`, `on_refused` and `draining`.
  HandlerAccess handlers;
};

// Thread-safe.
class ProcessorService final : public JobListeners {
 public:
  // `handlers` and `clock` are not owned and outlive the service.
  ProcessorService(const handler::HandlerRegistry* handlers, ServiceOptions options,
                   base::Clock* clock);
  ~ProcessorService() override;
  ProcessorService(const ProcessorService&) = delete;
  ProcessorService& operator=(const ProcessorService&) = delete;

  // Looks at the jobs and starts to work for them, with a SlowItems of its own. `dependencies` and
  // `jobs` are not owned and outlive the service, or its Close. An error is the registry's or the
  // bus's: nothing was started, and Start may be called again. A job that the service cannot work
  // for is no error: the service logs it, and tries again at each look.
  absl::Status Start(const Dependencies& dependencies, job::JobRegistry* jobs)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Starts all listeners that it has, and all later ones when they are made. Does nothing on a
  // second call.
  void Unpark() ABSL_LOCKS_EXCLUDED(mu_);

  // Stops all listeners at the same time, within `grace`; Listeners still answers their states.
  // Listeners of jobs that changed before keep the grace that they were given then. See
  // QueueListener::Stop.
  void Stop(absl::Duration grace) ABSL_LOCKS_EXCLUDED(mu_);

  // Call this after Stop: releases all that Start was given.
  void Close() ABSL_LOCKS_EXCLUDED(mu_);

  std::vector<JobListener> Listeners() override ABSL_LOCKS_EXCLUDED(mu_);
  std::map<std::string, std::string> OpenTroubles() override ABSL_LOCKS_EXCLUDED(mu_);
  std::string ParkedFor() override ABSL_LOCKS_EXCLUDED(mu_);
  void NotePause(absl::string_view job, bool for_lack_of_work) override ABSL_LOCKS_EXCLUDED(mu_);
  bool LacksWork(absl::string_view job) override ABSL_LOCKS_EXCLUDED(mu_);
  void Retire(absl::string_view job) override ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // A job as it was when its processor was made.
  struct Served {
    job::JobSummary as_of;
    job::JobDefinition definition;
    std::unique_ptr<Processor> processor;  // uses the definition
    std::shared_ptr<handler::HealthTroubles> health;
    std::stop_source draining;
    // Makes handlers while the service is parked; uses the service and the processor. Set before
    // other threads see this object.
    std::future<void> warming;

    void AwaitWarm() const {
      if (warming.valid()) warming.wait();
    }
  };
  using ServedPtr = std::shared_ptr<Served>;  // shared: see JobListener

  static JobListener ListenerOf(const ServedPtr& served);

  void Run() ABSL_LOCKS_EXCLUDED(mu_);
  // A processor whose handler has refused its job.
  struct Refusal {
    std::weak_ptr<Served> served;
    absl::Status why;
  };
  // What the service's thread has to do next.
  struct News {
    bool look = false;
    std::vector<uint64_t> cancelled;
    std::vector<Refusal> refused;
  };
  // Waits for news, or until `due`, when a look is due. nullopt: the service stops.
  std::optional<News> AwaitNews(absl::Duration due) ABSL_LOCKS_EXCLUDED(mu_);
  void OnEvent(const bus::InterRoleCommunicationEvent& event) ABSL_LOCKS_EXCLUDED(mu_);
  // Stops the work on a cancelled batch, and publishes an acknowledgement.
  void GiveUp(uint64_t batch) ABSL_LOCKS_EXCLUDED(mu_);
  void StopRefused(const Refusal& refusal) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status Look() ABSL_LOCKS_EXCLUDED(mu_);
  // The time to the next look; shorter after a look that could not reach a store.
  absl::Duration NextLookIn();
  void RefreshCancelled() ABSL_LOCKS_EXCLUDED(mu_);
  // Works for the job as it is now, if it can.
  void Serve(const job::JobSummary& job) ABSL_LOCKS_EXCLUDED(mu_);
  // Fills `made`, which after an error shows how far it got.
  absl::Status Make(const job::JobSummary& job, const ServedPtr& made) ABSL_LOCKS_EXCLUDED(mu_);
  static bool IsOthers(const Served& made, const absl::Status& status);
  HandlerAccess AccessOf(const ServedPtr& served);
  // The most workers of `job`; 0: this processor does not work for it.
  int ThreadsFor(const std::string& job) const;
  // Creates the missing queues of the job, and sets their lease times as the job says.
  absl::Status CreateQueues(const job::JobDefinition& job) const ABSL_LOCKS_EXCLUDED(mu_);
  // How many input partitions exist, which may be more than the job's definition has now.
  absl::StatusOr<int> CountPartitions(const job::JobDefinition& job) const ABSL_LOCKS_EXCLUDED(mu_);
  // Starts `made` in place of `old`, which may be null.
  void Replace(const ServedPtr& old, const ServedPtr& made) ABSL_LOCKS_EXCLUDED(mu_);
  // Starts its listener. After an error the next look tries it anew.
  absl::Status Begin(const ServedPtr& served, absl::string_view what) ABSL_LOCKS_EXCLUDED(mu_);
  // Forgets a served job, so that the next look tries it anew.
  void Forget(const ServedPtr& served) ABSL_LOCKS_EXCLUDED(mu_);
  void Drop(const std::string& job) ABSL_LOCKS_EXCLUDED(mu_);
  void DrainAside(ServedPtr served) ABSL_LOCKS_EXCLUDED(mu_);
  void ReapDrained();

  bool IsWantedLocked(const std::string& job) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  ServedPtr ServedAs(const std::string& job) ABSL_LOCKS_EXCLUDED(mu_);

  const handler::HandlerRegistry* const handlers_;  // not owned
  const ServiceOptions options_;
  base::Clock* const clock_;  // not owned

  SlowItems slow_items_;  // outlives the processors
  // Set by Start before the thread exists.
  Dependencies deps_;
  job::JobRegistry* jobs_ = nullptr;  // not owned
  std::unique_ptr<RevisionCache> revisions_;
  std::unique_ptr<bus::TriggerBus::Subscription> subscription_;

  JobTroubles job_troubles_;
  std::unique_ptr<PoolMetrics> pool_metrics_;  // from Start to Close

  base::Mutex mu_;
  base::CondVar changed_;
  bool look_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<uint64_t> cancelled_ ABSL_GUARDED_BY(mu_);
  std::vector<Refusal> refused_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::map<std::string, ServedPtr> served_ ABSL_GUARDED_BY(mu_);
  std::set<std::string> retired_ ABSL_GUARDED_BY(mu_);
  std::set<std::string, std::less<>> lacking_work_ ABSL_GUARDED_BY(mu_);  // if they are paused
  bool all_retired_ ABSL_GUARDED_BY(mu_) = false;
  bool parked_ ABSL_GUARDED_BY(mu_);

  // Only for the thread that looks; Start and Stop use them while it does not run.
  bool look_soon_ = false;
  int hasty_looks_ = 0;  // in a row
  std::list<std::future<void>> drains_;
  std::thread thread_;
};

}  // namespace muster::processor
