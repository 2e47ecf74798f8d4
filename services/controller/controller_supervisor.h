// SPDX-License-Identifier: Apache-2.0

// ControllerSupervisor: runs a controller for each job, and replaces a controller that stopped
// because a store failed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/base/mutex.h"
#include "services/controller/controller.h"

namespace muster::controller {

// Thread-safe.
class ControllerSupervisor {
 public:
  // Whether the job is there, or a batch of it waits for results. Asked before a controller that
  // has stopped is replaced.
  using IsNeeded = std::function<bool(const std::string& job)>;

  // `options` apply to every controller, except for the partitions. on_complete and on_error of
  // `events` are not used. Without `is_needed` each job is.
  ControllerSupervisor(std::string account, Options options, Events events,
                       Dependencies dependencies, IsNeeded is_needed = nullptr);
  ~ControllerSupervisor();  // Stop()s

  // Counts the job's results from now on. Errors are the queue store's; call it again. While a
  // base::Mismatch keeps a controller that began earlier from starting, Begin answers that error.
  absl::Status Begin(const std::string& job) ABSL_LOCKS_EXCLUDED(mu_);
  // The same, of a batch that is registered, whose results may come soon.
  absl::Status Begin(const std::string& job, uint64_t batch) ABSL_LOCKS_EXCLUDED(mu_);

  // As Controller::CheckCompletion, with the controller of the batch's job.
  absl::Status CheckCompletion(uint64_t batch) ABSL_LOCKS_EXCLUDED(mu_);

  // Jobs whose results are not counted now, at most `most` of them, each with the reason: since a
  // store failed its controller, no other one has counted, or has run for a while.
  std::map<std::string, absl::Status> Troubles(size_t most) const ABSL_LOCKS_EXCLUDED(mu_);

  // Every controller finishes its current commit and stops.
  void Stop() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Counting {
    std::unique_ptr<Controller> controller;
    bool starting = false;     // a Begin starts the first controller
    bool begun_again = false;  // since it was last asked whether the job is needed
    bool failed = false;
    int failures = 0;
    absl::Duration begun;  // monotonic
    absl::Duration again_at;
    absl::Status not_started = {};  // why the latest controller could not start
    absl::Status trouble = {};      // why results are not counted; OK: nothing is known of
    bool was_cut_short = false;     // and no result was counted since
  };

  absl::StatusOr<std::unique_ptr<Controller>> Start(const std::string& job);
  void OnError(const std::string& job, const absl::Status& why) ABSL_LOCKS_EXCLUDED(mu_);
  void OnProgress(const std::string& job, const report::Progress& progress)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Replaces stopped controllers when their restart is due.
  void Run() ABSL_LOCKS_EXCLUDED(mu_);
  void RestartLocked(const std::string& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool OneStartsLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // When the next restart is due, and of which job.
  std::pair<absl::Duration, std::string> NextLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::string account_;
  const Options options_;
  const Events events_;
  const Dependencies deps_;
  const IsNeeded is_needed_;

  mutable base::Mutex mu_;
  base::CondVar changed_;
  std::map<std::string, Counting> jobs_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace muster::controller
