// SPDX-License-Identifier: Apache-2.0

// ProcessActuator: replicas are processes of this host, for example muster-processor, each under a
// keeper (replica_keeper.h).
//
// A state folder holds all state: the wanted numbers, the highest fencing token, and a record of
// each replica (state_folder.h). An agent that opens the folder takes over the replicas in it, so a
// restarted agent adopts the replicas of an earlier one. Agents of one host may share the folder.
//
// No replica stays unattended: without an agent a replica goes on for `unattended_limit`, then
// drains. The wanted number then shrinks by that replica, so a returning agent does not replace it
// until a new order asks for it. The same holds for replicas that ended with the whole machine.
//
// The actuator has no thread: Observe and Apply look after the replicas, and agents call Observe
// each second.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/actuator/actuator.h"
#include "muster/actuator/orders.h"
#include "muster/actuator/process/limits.h"
#include "muster/actuator/process/replica_store.h"
#include "muster/actuator/process/restart_backoff.h"
#include "muster/actuator/process/rolling_update.h"
#include "muster/actuator/process/state_folder.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/os/file_descriptor.h"

namespace muster::actuator::process {

struct Program {
  std::string path;  // a name without a slash is looked up in PATH
  std::vector<std::string> arguments = {};
  // Added to this process's own environment and to the variables that each replica gets:
  // MUSTER_LISTEN=127.0.0.1:0, MUSTER_DATA_DIR in its folder, MUSTER_DRAIN_GRACE. MUSTER_INSTANCE,
  // the replica's name, cannot be changed.
  std::vector<std::pair<std::string, std::string>> environment = {};
  // What the target may have, however many are wanted: a replica with another path or other
  // arguments is replaced, and others start before it goes only up to this number.
  int most = kMaxReplicas;
};

// By the targets' names.
using Targets = std::map<std::string, Program, std::less<>>;

struct Options {
  Targets targets;
  std::string folder;  // state and logs
  std::string keeper;  // path of muster-replica-keeper
  // Path of a file that names where the replicas serve their metrics (EncodeMetricsTargets), as
  // they were last observed; empty: there is none.
  std::string metrics_targets = {};
  // Counts from SIGTERM. A replica that takes kill_slack longer is killed.
  absl::Duration drain_grace = absl::Seconds(30);
  absl::Duration kill_slack = kKillSlack;
  absl::Duration unattended_limit = absl::Minutes(1);
};

// Thread-safe. A replica is ready when its program has told READY=1 at NOTIFY_SOCKET, as muster's
// services do when health answers SERVING.
class ProcessActuator final : public actuator::Actuator {
 public:
  // `clock` is not owned. Creates the folder if needed. Starts no replicas.
  static absl::StatusOr<std::unique_ptr<ProcessActuator>> Open(Options options, base::Clock* clock);

  // Replaces the targets after the rules change. Replicas of a removed target stay until
  // LetGoOfUnknown: the agent that leads may have other rules.
  void SetTargets(Targets targets) ABSL_LOCKS_EXCLUDED(mu_);

  // Lets the replicas go of all targets that SetTargets did not name, also those that an earlier
  // agent has started; they drain. If such a target returns, nothing is wanted of it. The arguments
  // and the errors are those of an order (Apply). Call it each second: it also clears away the
  // replicas that have ended, when nobody observes their target any more.
  absl::Status LetGoOfUnknown(int64_t fencing_token, absl::Duration not_after)
      ABSL_LOCKS_EXCLUDED(mu_);

  std::string_view kind() const override { return "process"; }
  // Also replaces replicas that ended by themselves, after a wait that grows with each failure in a
  // row, and those whose program is another one by now (rolling_update.h). DataLoss: the file of
  // orders cannot be read.
  absl::StatusOr<actuator::TargetState> Observe(std::string_view target) override
      ABSL_LOCKS_EXCLUDED(mu_);
  // Fails as Observe does. InvalidArgument: more than kMaxReplicas. If the program cannot be
  // executed, returns that error (NotFound becomes Unavailable); the order stays in force and the
  // actuator tries again.
  absl::StatusOr<actuator::Outcome> Apply(const actuator::Order& order) override
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // The state that is read under the folder's lock, with the lock.
  struct Session {
    os::FileDescriptor lock;
    DesiredState orders;
    std::vector<LivingReplica> living;
  };

  ProcessActuator(Options options, base::Clock* clock);

  absl::StatusOr<Program> FindLocked(std::string_view target) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Takes the folder's lock and records which replicas have ended since the last session.
  absl::StatusOr<Session> BeginLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The same for an order, which is refused if it is stale or has expired.
  absl::StatusOr<Session> BeginLocked(const actuator::Order& order)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void DischargeLocked(const DepartedReplica& departed) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Starts or stops replicas until their number is as ordered, and replaces those that run another
  // program. Returns OK also while the backoff delays a start.
  absl::Status FulfilLocked(const std::string& target, const Program& program,
                            const std::vector<std::string>& let_go_first, Session* session)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status StartLocked(const std::string& target, const Program& program, int count)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status ShrinkLocked(const std::string& target, const Program& program,
                            const std::vector<std::string>& let_go_first,
                            const RollingUpdate::Departures& departures, const Session& session)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void WriteMetricsTargetsLocked(const std::vector<LivingReplica>& living)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void WaitForKeepersLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::string HealthTroublesLocked(std::string_view target) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Options options_;
  base::Clock* const clock_;     // not owned
  os::FileDescriptor presence_;  // tells keepers that an agent is present
  actuator::OrderGate gate_{clock_};

  // Held as long as the folder's lock, so that calls run one after the other.
  base::Mutex mu_;
  ReplicaStore store_ ABSL_GUARDED_BY(mu_);
  Targets targets_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, RestartBackoff, std::less<>> backoffs_ ABSL_GUARDED_BY(mu_);
  std::string metrics_targets_ ABSL_GUARDED_BY(mu_);  // the text that the file has
  std::set<pid_t> keepers_
      ABSL_GUARDED_BY(mu_);  // children that this process has not waited for yet
};

}  // namespace muster::actuator::process
