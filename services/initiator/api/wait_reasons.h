// SPDX-License-Identifier: Apache-2.0

// WaitReasons: why nothing is done for a batch, in one sentence: what is missing, since when
// nothing was counted, and what to do. It is decided here alone: `batch get`, `batch list`, `batch
// watch`, `batch submit --wait`, the Python client and `muster doctor` show it as the batch's
// problem.
//
//   heartbeats of processors ─┐
//   addresses of controllers ─┼─► WorkView, at most one each second ──► sentence for each batch
//   targets of scaling agents ┤   (targets only while a batch lacks a processor)
//   handlers of jobs ─────────┤   (likewise, or lacks its version)
//   records of held keys ─────┘   (only while a controller is heard)
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/bus/roster.h"
#include "muster/item/held_key_admin.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/v1/scaling_service.pb.h"
#include "services/initiator/batch/status.h"

namespace muster::initiator::api {

// What one moment's heartbeats say of the processors and controllers. Immutable.
class WorkView {
 public:
  explicit WorkView(const std::vector<bus::RosterEntry>& processors, bool has_controller = true,
                    const std::vector<bus::RosterEntry>& controllers = {});

  // What keeps all processors from the batch; empty: one can work on it. The batch is not over.
  std::string TroubleWith(const ledger::Batch& batch) const;
  // No processor was heard that has any handler of the job, or would have but for its trouble.
  bool LacksProcessor(const std::string& job) const;
  // Processors have the handler of the batch's job, and none of them in the batch's version.
  bool LacksVersion(const ledger::Batch& batch) const;
  bool has_controller() const { return has_controller_; }
  // What keeps the results of the job from being counted; empty: no controller knows of anything.
  std::string TroubleWithCounting(const std::string& job) const;

 private:
  struct Processor {
    std::string instance;
    std::string version;  // of the job's handler; empty: it does not get as far as to have one
    std::string release;  // that it is parked for; empty: it is not parked
    std::string trouble;
    bool is_throttled = false;  // and finished nothing in the heartbeat's window
  };
  using Processors = std::vector<Processor>;

  static bool Fits(const ledger::Batch& batch, const Processor& processor);
  static std::string TroubleOf(const Processor& processor);

  std::map<std::string, Processors> by_job_;
  const bool has_controller_;
  std::map<std::string, std::string> uncounted_;  // by job: why not
};

// How a job's handler is run, as far as it decides what is to be started.
struct HandlerKind {
  // The job file names the version that processors have.
  bool is_of_job_file = false;
  std::string server;   // HOST:PORT of the handler server that processors call; empty: none
  std::string version;  // that the job file wants of it
};

// Thread-safe.
class WaitReasons {
 public:
  struct Sources {
    std::function<std::vector<bus::RosterEntry>()> processors;
    // Whether a controller that counts is heard.
    std::function<bool()> has_controller;
    // Targets whose replicas a scaling agent starts and stops; empty: no agent does. May take as
    // long as a call.
    std::function<std::vector<v1::ScalingTarget>()> targets;
    // The held keys of a job. May take as long as a call; null: no job holds any.
    std::function<item::HeldSummary(const std::string& job)> held_keys = nullptr;
    // The handler of a job as it is defined now. May take as long as a call; null: linked ones.
    std::function<HandlerKind(const std::string& job)> handler = nullptr;
    // Null: what keeps controllers from counting is not known.
    std::function<std::vector<bus::RosterEntry>()> controllers = nullptr;
  };

  // `account` is that of the jobs' queues. `clock` is not owned.
  WaitReasons(Sources sources, std::string account, base::Clock* clock);

  // Notes in `status` what the batch waits for, unless it is over, or has another problem while a
  // controller is heard, or something was counted of it within `patience`, so that a client that
  // follows the batch does not see reasons that pass within seconds. Looks at the sources once a
  // second at most, and asks for targets, and for the held keys and the handler of a job, every
  // five.
  void Explain(batch::BatchStatus* status, absl::Duration patience = absl::ZeroDuration())
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  std::shared_ptr<const WorkView> Look() ABSL_LOCKS_EXCLUDED(mu_);
  std::string WhatStartsProcessors(const std::string& job) ABSL_LOCKS_EXCLUDED(mu_);
  // By targets_; nullopt: none is for the job.
  std::optional<std::string> WhatAgentsStart(const std::string& job) ABSL_LOCKS_EXCLUDED(mu_);
  std::string WhatHasVersion(const ledger::Batch& batch) ABSL_LOCKS_EXCLUDED(mu_);
  HandlerKind HandlerOf(const std::string& job) ABSL_LOCKS_EXCLUDED(mu_);
  item::HeldSummary HeldOf(const std::string& job) ABSL_LOCKS_EXCLUDED(mu_);

  const Sources sources_;
  const std::string account_;
  base::Clock* const clock_;  // not owned

  base::Mutex mu_;
  std::shared_ptr<const WorkView> view_ ABSL_GUARDED_BY(mu_);  // shared with the calls that use it
  absl::Duration looked_ ABSL_GUARDED_BY(mu_) = -absl::InfiniteDuration();
  std::vector<v1::ScalingTarget> targets_ ABSL_GUARDED_BY(mu_);
  absl::Duration asked_ ABSL_GUARDED_BY(mu_) = -absl::InfiniteDuration();
  struct Held {
    item::HeldSummary summary;
    absl::Duration asked;
  };
  std::map<std::string, Held> held_ ABSL_GUARDED_BY(mu_);  // by job; of jobs with open batches
  struct Handled {
    HandlerKind kind;
    absl::Duration asked;
  };
  std::map<std::string, Handled> handlers_ ABSL_GUARDED_BY(mu_);  // likewise
};

}  // namespace muster::initiator::api
