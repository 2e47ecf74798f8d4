// RestartBackoff: how long one target's program waits after it has failed, so that one which ends
// at once does not eat the host.
#pragma once

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
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/base/retry.h"
#include "muster/os/file_descriptor.h"
#include "muster/scaling/actuator/actuator.h"
#include "muster/scaling/actuator/orders.h"
#include "muster/scaling/actuator/process/limits.h"
#include "muster/scaling/actuator/process/replica_store.h"
#include "muster/scaling/actuator/process/state_folder.h"

namespace muster::scaling::actuator::process {

// Not thread-safe. Times are a clock's Monotonic().
class RestartBackoff {
 public:
  RestartBackoff();

  // A replica that nobody told to go ended after it `ran` so long; `why` is for people. Those that
  // end before the next start is due count once.
  void OnFailure(absl::Duration ran, std::string why, absl::Duration now);
  // The program could not be executed at all.
  void OnRefusal(absl::Status why, absl::Duration now);
  // Replicas were started.
  void OnStart(absl::Duration now);

  // Zero: now.
  absl::Duration WaitAt(absl::Duration now) const;
  // Of the last try; OK: the program could be executed.
  const absl::Status& refusal() const { return refusal_; }
  // The last failure, and how long the next start waits; empty: all is well, or has been for
  // kWellAfter.
  std::string Tell(absl::Duration now) const;

 private:
  void Fail(bool in_a_row, std::string why, absl::Duration now);

  base::IdleBackoff backoff_;
  int failures_ = 0;  // in a row
  std::string why_;
  absl::Status refusal_;
  absl::Duration failed_at_ = -absl::InfiniteDuration();
  absl::Duration next_start_ = -absl::InfiniteDuration();
};

// ProcessActuator: replicas are processes of this host, muster-processor for one, each under a
// keeper (keeper.h).
//
// A state folder holds all that is known: what is wanted, the highest fencing token, and a record
// of each replica (standing_orders.h, replica_folder.h). Whoever opens it has the replicas that
// live in it, so an agent that comes back adopts those that an earlier one started. Agents of one
// host may share it.
//
// Nobody is left alone: replicas go on without an agent for `unattended_limit`, then drain. Those
// are not wanted any more when an agent is back, until it says so; likewise those that went with
// the whole machine.
//
// There is no thread: Observe and Apply look after the replicas. Agents look each second.

struct Program {
  std::string path;  // a name without a slash is looked up in PATH
  std::vector<std::string> arguments = {};
  // On top of this process's own, and of what each replica gets: MUSTER_LISTEN=127.0.0.1:0,
  // MUSTER_DATA_DIR in its folder, MUSTER_DRAIN_GRACE. MUSTER_INSTANCE, the replica's name, is not
  // to be changed.
  std::vector<std::pair<std::string, std::string>> environment = {};
};

// By the targets' names.
using Targets = std::map<std::string, Program, std::less<>>;

struct Options {
  Targets targets;
  std::string folder;  // state and logs
  std::string keeper;  // path of muster-replica-keeper
  // From SIGTERM on. A replica that takes kill_slack longer is killed.
  absl::Duration drain_grace = absl::Seconds(30);
  absl::Duration kill_slack = kKillSlack;
  absl::Duration unattended_limit = absl::Minutes(1);
};

// Thread-safe. A replica is ready when its program has said so on its stderr, as muster's services
// do when health answers SERVING: "msg=ready instance=NAME".
class ProcessActuator final : public scaling::actuator::Actuator {
 public:
  // `clock` is not owned. Makes the folder if need be, and starts nothing.
  static absl::StatusOr<std::unique_ptr<ProcessActuator>> Open(Options options, base::Clock* clock);

  // From now on these are the targets: the rules have changed. Replicas of one that is none any
  // more stay until it is one again, or there is no agent.
  void SetTargets(Targets targets);

  std::string_view kind() const override { return "process"; }
  // Replaces replicas that ended though nobody told them to, after a wait that grows with each
  // failure in a row. DataLoss: the folder's orders cannot be read.
  absl::StatusOr<scaling::actuator::TargetState> Observe(std::string_view target) override;
  // As Observe. InvalidArgument: more than kMaxReplicas. The error of a program that cannot be
  // executed (NotFound becomes Unavailable); the order stands, and is tried again.
  absl::StatusOr<scaling::actuator::Outcome> Apply(const scaling::actuator::Order& order) override;

 private:
  // While the folder's lock is held.
  struct Session {
    os::FileDescriptor lock;
    DesiredState orders;
    std::vector<LivingReplica> living;
  };

  ProcessActuator(Options options, base::Clock* clock);

  absl::StatusOr<Program> FindLocked(std::string_view target) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Takes the folder's lock, and puts down what has become of the replicas.
  absl::StatusOr<Session> BeginLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void DischargeLocked(const DepartedReplica& departed) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Starts and lets go so that it is as the orders say. OK also while a start is held back.
  absl::Status FulfilLocked(const std::string& target, const Program& program,
                            const std::vector<std::string>& let_go_first, Session* session)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status StartLocked(const std::string& target, const Program& program, int count)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status ShrinkLocked(const std::string& target, const std::vector<std::string>& let_go_first,
                            int count, const Session& session) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void WaitForKeepersLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::string HealthIssuesLocked(std::string_view target) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Options options_;
  base::Clock* const clock_;     // not owned
  os::FileDescriptor presence_;  // an agent is here
  scaling::actuator::OrderGate gate_{clock_};

  // Held while the folder's lock is: calls come one after the other.
  base::Mutex mu_;
  ReplicaStore store_ ABSL_GUARDED_BY(mu_);
  Targets targets_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, RestartBackoff, std::less<>> backoffs_ ABSL_GUARDED_BY(mu_);
  std::set<pid_t> keepers_ ABSL_GUARDED_BY(mu_);  // children that were not waited for
};

}  // namespace muster::scaling::actuator::process
