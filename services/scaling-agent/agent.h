// SPDX-License-Identifier: Apache-2.0

// Agent: takes part in the leader election, runs one TargetLoop for each target of the rules, and
// holds the state that the scaling service reports.
//
//   election ─► leads? ─┬─► TargetLoop "billing" ─► …
//   rules file ─────────┤   TargetLoop "rating"  ─► …
//   overrides, ids ─────┘
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/actuator/actuator.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/bus/roster.h"
#include "muster/bus/trigger_bus.h"
#include "muster/queue/queue_store.h"
#include "muster/scaling/rules/rules_watch.h"
#include "muster/sync/optimistic_sync_store.h"
#include "muster/telemetry/registry.h"
#include "muster/v1/scaling_service.pb.h"
#include "services/scaling-agent/decision_log.h"
#include "services/scaling-agent/leader_election.h"
#include "services/scaling-agent/overrides.h"
#include "services/scaling-agent/periodic_thread.h"
#include "services/scaling-agent/target_loop.h"

namespace muster::scaling_agent {

struct AgentOptions {
  ElectionOptions election;
  LoopOptions loop;  // with several targets each loop records into its own file, FILE.TARGET
};

// The agent owns none of these. All of them outlive the agent and are thread-safe.
struct AgentDependencies {
  queue::QueueStore* queues = nullptr;
  sync::OptimisticSyncStore* sync = nullptr;
  bus::TriggerBus* bus = nullptr;
  actuator::Actuator* actuator = nullptr;
  base::Clock* clock = nullptr;
  std::function<std::vector<bus::RosterEntry>()> roster;      // of processors
  std::function<std::vector<bus::RosterEntry>()> initiators;  // see LoopDependencies
  std::function<std::vector<std::string>()> jobs;             // their names; may be empty
  // Gives the actuator its new targets, and the jobs that exist: after the rules change, and once
  // there are other jobs while a queue of the rules belongs to none; may be empty.
  std::function<void(const scaling::rules::Rules&, const std::vector<std::string>&)> use_targets;
  // Lets the replicas go of targets that the rules do not have any more. Called after use_targets,
  // each second while this agent leads and acts; may be empty.
  std::function<absl::Status(const HeldToken&)> let_go_of_unknown;
  OnDesired on_desired;                    // see LoopDependencies; may be empty
  telemetry::Registry* metrics = nullptr;  // null: nothing is measured
};

// Thread-safe.
class Agent {
 public:
  Agent(AgentOptions options, AgentDependencies deps,
        std::unique_ptr<scaling::rules::RulesWatch> rules);
  ~Agent();  // Stop()s

  // Subscribes to triggers and starts the threads. After an error the caller may call Start again.
  absl::Status Start() ABSL_LOCKS_EXCLUDED(mu_);
  // Stops deciding, releases the leader lease and ends the streams of decisions. Waits for the
  // steps that run. A second call does nothing.
  void Stop() ABSL_LOCKS_EXCLUDED(mu_);

  bool leads() const { return election_.Token().has_value(); }
  // HOST:PORT of the agent that leads, maybe this one; empty: it is not known.
  std::string leader_address() const { return election_.leader().address; }
  v1::GetAgentResponse About() const;
  scaling::rules::ActiveRules::State rules() const { return rules_->active_rules().state(); }

  // nullptr: the rules have no such target. The agent shares ownership and may drop the loop later.
  std::shared_ptr<TargetLoop> Find(absl::string_view target) const ABSL_LOCKS_EXCLUDED(mu_);
  std::vector<std::shared_ptr<TargetLoop>> Targets() const
      ABSL_LOCKS_EXCLUDED(mu_);  // in order of name
  // The latest snapshot of a target, found by its name or, if `target` is empty, by one of its
  // queues. NotFound: no target matches. Unavailable: the loop has not observed the target yet.
  absl::StatusOr<Snapshot> Known(absl::string_view target, absl::string_view queue) const
      ABSL_LOCKS_EXCLUDED(mu_);

  DecisionLog* decisions() { return &decision_log_; }
  // See Overrides for the errors. The target's loop decides again at once.
  absl::Status SetOverride(const Override& override) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status ClearOverride(const std::string& target) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  using Loops = std::map<std::string, std::shared_ptr<TargetLoop>, std::less<>>;

  void HoldLead() ABSL_LOCKS_EXCLUDED(mu_);
  void WatchRules() ABSL_LOCKS_EXCLUDED(mu_);
  void PollRules() ABSL_LOCKS_EXCLUDED(mu_);
  // A queue whose name muster has made safe tells its job only once the job is applied.
  void WatchJobs();
  void LetGoOfUnknown();
  // Reads which jobs there are. Returns whether they are others than before.
  bool ReadJobs();
  void KeepRecords() ABSL_LOCKS_EXCLUDED(mu_);
  void OnTrigger(const bus::InterRoleCommunicationEvent& event) ABSL_LOCKS_EXCLUDED(mu_);
  void UseRules() ABSL_LOCKS_EXCLUDED(mu_);
  std::shared_ptr<TargetLoop> MakeLoop(const scaling::rules::Target& target,
                                       const std::shared_ptr<const RulesInForce>& rules);
  void Wake(absl::string_view target) ABSL_LOCKS_EXCLUDED(mu_);

  const AgentOptions options_;
  const AgentDependencies deps_;
  const std::unique_ptr<scaling::rules::RulesWatch> rules_;
  LeaderElection election_;
  Overrides overrides_;
  DecisionLog decision_log_;

  // led_ and election_trouble_ belong to the election thread, refreshed_ and records_trouble_ to
  // the records thread, known_jobs_, jobs_read_ and unknown_trouble_ to that of the rules.
  bool led_ = false;
  std::string election_trouble_;
  absl::Duration refreshed_ = -absl::InfiniteDuration();
  std::string records_trouble_;
  std::vector<std::string> known_jobs_;
  absl::Duration jobs_read_ = -absl::InfiniteDuration();
  std::string unknown_trouble_;

  mutable base::Mutex mu_;
  Loops loops_ ABSL_GUARDED_BY(mu_);
  bool has_begun_ ABSL_GUARDED_BY(mu_) = false;
  bool has_stopped_ ABSL_GUARDED_BY(mu_) = false;

  std::unique_ptr<bus::TriggerBus::Subscription> subscription_;
  PeriodicThread election_thread_;
  PeriodicThread rules_thread_;
  PeriodicThread records_thread_;
};

}  // namespace muster::scaling_agent
