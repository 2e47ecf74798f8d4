// HealthIssues: why a processor does not work for jobs. Each is said once in its log.
#pragma once

#include <future>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
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
#include "services/processor/processor.h"
#include "services/processor/revision_cache.h"

namespace muster::processor {

struct HealthIssue {
  std::string why;
  // What the job's handler has refused; nullopt: it did not come to that.
  std::optional<job::JobSummary> refused = std::nullopt;
  bool is_others = false;  // the job's linked handler is not in this program
};

// Thread-safe. The last issue about a job stands until it is taken back.
class HealthIssues {
 public:
  // One line in the log for what is wrong with a job, until something else is.
  void Report(const std::string& job, HealthIssue issue);

  // `job` can be worked for, as far as that shows before its handler is called: what the handler
  // has refused stands, until it has another job to look at.
  void CanWork(const job::JobSummary& job);
  // Its handler takes the job.
  void IsAccepted(const std::string& job);
  // Takes back what was said of all other jobs, which are no more.
  void KeepOnly(const std::vector<job::JobSummary>& jobs);

  // What stands, by job, printable and of bounded length; without that which is others' work.
  std::map<std::string, std::string> OpenIssues() const;

 private:
  mutable base::Mutex mu_;
  std::map<std::string, HealthIssue> by_job_ ABSL_GUARDED_BY(mu_);
};

// ProcessorService: works for the jobs that a mesh has, and follows their changes.
//
//   registry ─► look ─┬─ new job ─────────► a Processor is created and started
//      ▲              ├─ changed ─────────► a new one starts, then the old one is drained
//   JobChangedEvent,  ├─ deleted ─────────► drained
//   or every so often └─ no handler here ─► left to other processors
//
// A handler that is a server may refuse a job. Then its Processor is drained, and the next look
// makes another one.
//
// An item of a job that has changed since is worked on with the revision that its batch is bound to
// (RevisionCache), by the old Processor or the new one.

// Workers of a kind of work, apart from those of others.
struct JobPool {
  std::string job;
  int threads = 0;  // at most; 0: ServiceOptions::threads
};

struct ServiceOptions {
  std::string account;
  std::string instance = "processor";
  std::vector<JobPool> pools;  // works for these jobs only, none of them twice; empty: for all
  int threads = 1;             // workers of each job that has no number of its own, at most
  absl::Duration look_interval = kLookInterval;
  // What handlers of a job that has changed, or was deleted, may take to finish.
  absl::Duration drain_grace = absl::Seconds(30);
  // Its instance and on_refused are the service's own.
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

  // Looks at the jobs and starts to work for them. `dependencies` and `jobs` are not owned and
  // outlive the service, or its Close. The registry's error, or the bus's: nothing was started, and
  // Start may be called again. A job that cannot be worked for is no error: it is logged, and tried
  // again at each look.
  absl::Status Start(const Dependencies& dependencies, job::JobRegistry* jobs);

  // Stops all listeners, side by side, within `grace`; their states can still be asked for. Those
  // of jobs that changed before have the grace that they were given then. See QueueListener::Stop.
  void Stop(absl::Duration grace);

  // After Stop: lets go of all that Start was given.
  void Close();

  std::vector<JobListener> Listeners() override;
  std::map<std::string, std::string> OpenIssues() override;
  void Retire(absl::string_view job) override;

 private:
  // A job as it was when its processor was made.
  struct Served {
    job::JobSummary as_of;
    job::JobDefinition definition;
    std::unique_ptr<Processor> processor;  // uses the definition
    std::shared_ptr<handler::HealthIssues> health;
  };
  using ServedPtr = std::shared_ptr<Served>;  // shared: see JobListener

  static JobListener ListenerOf(const ServedPtr& served);

  void Run();
  // A job whose handler says that it cannot work on such.
  struct Refusal {
    std::weak_ptr<Served> served;
    absl::Status why;
  };
  // What there is to do, besides serving.
  struct News {
    bool look = false;
    std::vector<uint64_t> cancelled;
    std::vector<Refusal> refused;
  };
  // Waits for news; a look is due at `due`. nullopt: the service stops.
  std::optional<News> AwaitNews(absl::Duration due);
  void OnEvent(const bus::InterRoleCommunicationEvent& event);
  // Stops what runs of a batch that was given up, and says so.
  void GiveUp(uint64_t batch);
  void StopRefused(const Refusal& refusal);
  absl::Status Look();
  // Sooner after one that met a store out of reach.
  absl::Duration NextLookIn();
  void RefreshCancelled();
  // Works for the job as it is now, if it can.
  void Serve(const job::JobSummary& job);
  // Into `made`, which after an error shows how far that went.
  absl::Status Make(const job::JobSummary& job, const ServedPtr& made);
  static bool IsOthers(const Served& made, const absl::Status& status);
  HandlerAccess AccessOf(const ServedPtr& served);
  // Workers of `job` at most; 0: it is others' work.
  int ThreadsFor(const std::string& job) const;
  // Makes what of the job's queues is not there, and has their leases last as it says.
  absl::Status CreateQueues(const job::JobDefinition& job) const;
  // How many input partitions there are, which may be more than the job has now.
  absl::StatusOr<int> CountPartitions(const job::JobDefinition& job) const;
  // What takes the old one's place is started; `old` may be null.
  void Replace(const ServedPtr& old, const ServedPtr& made);
  // So that the next look tries it anew.
  void Forget(const ServedPtr& served);
  void Drop(const std::string& job);
  void DrainAside(ServedPtr served);
  void ReapDrained();

  bool IsWantedLocked(const std::string& job) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  ServedPtr ServedAs(const std::string& job);

  const handler::HandlerRegistry* const handlers_;  // not owned
  const ServiceOptions options_;
  base::Clock* const clock_;  // not owned

  // Set by Start, before there is a thread.
  Dependencies deps_;
  job::JobRegistry* jobs_ = nullptr;  // not owned
  std::unique_ptr<RevisionCache> revisions_;
  std::unique_ptr<bus::TriggerBus::Subscription> subscription_;

  HealthIssues health_issues_;

  base::Mutex mu_;
  base::CondVar changed_;
  bool look_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<uint64_t> cancelled_ ABSL_GUARDED_BY(mu_);
  std::vector<Refusal> refused_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::map<std::string, ServedPtr> served_ ABSL_GUARDED_BY(mu_);
  std::set<std::string> retired_ ABSL_GUARDED_BY(mu_);
  bool all_retired_ ABSL_GUARDED_BY(mu_) = false;

  // Of the thread that looks; Start and Stop touch them while there is none.
  bool look_soon_ = false;
  int hasty_looks_ = 0;  // in a row
  std::list<std::future<void>> drains_;
  std::thread thread_;
};

}  // namespace muster::processor
