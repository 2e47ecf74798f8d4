// SPDX-License-Identifier: Apache-2.0

// ThreadsActuator: parks and resumes processors that run already. WorkerClient makes its calls.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/actuator/actuator.h"
#include "muster/actuator/orders.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/rpc/channel.h"
#include "muster/v1/heartbeat.pb.h"
#include "muster/v1/worker_service.grpc.pb.h"

namespace muster::actuator::threads {

// The time for a processor's answer to a call. A processor answers from memory, except for the
// depths of its queues, and an agent asks each second.
inline constexpr absl::Duration kCallLimit = absl::Seconds(5);

// How long a known processor state stays valid: asking again costs the queue store a call for each
// partition, and besides this actuator only people change the state.
inline constexpr absl::Duration kBelievedFor = absl::Seconds(30);

// How long a processor that hangs is neither asked again nor told anything: several times
// kCallLimit. An order expires before such a call ends, so that orders are carried out between two
// of them only.
inline constexpr absl::Duration kHangBelievedFor = absl::Seconds(15);

// A running processor.

struct LiveProcessor {
  std::string instance;
  std::string address;  // HOST:PORT of its WorkerService
  absl::Time started;
  std::set<std::string> jobs;  // that the processor works for
};

// Reads these fields from a heartbeat.
LiveProcessor FromHeartbeat(const v1::Heartbeat& heartbeat);

// Returns the processors that run now and are not leaving, for example from bus::Roster.
// Thread-safe, and does not block.
using ProcessorDirectory = std::function<std::vector<LiveProcessor>()>;

// A call to one processor about its listeners for a job; an empty job: all its listeners.

struct WorkerCall {
  enum class Verb { kQuery, kPark, kLetGo, kSetTasks };

  std::string address;
  std::string job;
  Verb verb = Verb::kQuery;
  int tasks = 0;  // kSetTasks
};

// A processor's answer; `phase` is set for kQuery only.
struct WorkerAnswer {
  absl::Status status;
  v1::ListenerPhase phase = v1::LISTENER_PHASE_UNSPECIFIED;
};

// Thread-safe.
class WorkerClient {
 public:
  WorkerClient(rpc::ChannelOptions channel, absl::Duration limit);

  // Calls many processors at the same time; no call waits for another. Returns the answers in the
  // order of `calls`, once all have arrived or `limit` has passed (DeadlineExceeded). Retries
  // nothing.
  std::vector<WorkerAnswer> Make(const std::vector<WorkerCall>& calls) ABSL_LOCKS_EXCLUDED(mu_);

  // Closes the connections to all other processors.
  void KeepOnly(const std::vector<std::string>& addresses) ABSL_LOCKS_EXCLUDED(mu_);
  size_t connections() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  using Stub = v1::WorkerService::Stub;

  // Shared, because a call may still run when KeepOnly drops the processor.
  absl::StatusOr<std::shared_ptr<Stub>> StubOf(const std::string& address) ABSL_LOCKS_EXCLUDED(mu_);

  rpc::ChannelOptions channel_;  // as the constructor received it, with retries off
  const absl::Duration limit_;

  mutable base::Mutex mu_;
  std::map<std::string, std::shared_ptr<Stub>> stubs_ ABSL_GUARDED_BY(mu_);
};

// ThreadsActuator: for a fixed set of processors that run without this actuator. It starts and ends
// none. It sets the number of dequeue tasks of each processor and parks the surplus processors: a
// parked processor takes no new work and stays warm.
//
// If an order asks for more replicas than there are processors, the outcome tells how many there
// are. Processors that start later work at once; the next order parks the surplus.

// Maps a target's name to its job. The target's replicas are the processors that work for the job,
// and calls concern their listeners for it. An empty job: all listeners of all processors.
using Targets = std::map<std::string, std::string, std::less<>>;

struct Options {
  Targets targets;
  ProcessorDirectory processors;
  rpc::ChannelOptions channel = {};
  absl::Duration call_limit = kCallLimit;
};

// Thread-safe.
class ThreadsActuator final : public actuator::Actuator {
 public:
  // `clock` is not owned.
  ThreadsActuator(Options options, base::Clock* clock);

  // Replaces the targets after the rules change.
  void SetTargets(Targets targets) ABSL_LOCKS_EXCLUDED(targets_mu_);

  std::string_view kind() const override { return "threads"; }
  // A processor that does not answer counts as kStarting; `wanted` is the number of ready and
  // starting processors. Asks each processor once in kBelievedFor, one that hangs once in
  // kHangBelievedFor, and one that fails at once each time.
  absl::StatusOr<actuator::TargetState> Observe(std::string_view target) override
      ABSL_LOCKS_EXCLUDED(targets_mu_, mu_);
  // `after` counts the processors at work after the answered calls. Unavailable: none of the
  // processors that had to change answered, or all of them are known to hang. Aborted: as of
  // Actuator, but processors may have been given their tasks.
  absl::StatusOr<actuator::Outcome> Apply(const actuator::Order& order) override
      ABSL_LOCKS_EXCLUDED(targets_mu_, mu_);

  // The number of open connections; those to processors that are gone are closed.
  size_t connections() const { return calls_.connections(); }

 private:
  // The last known state of a processor's listeners for one target.
  struct Known {
    std::string address;
    actuator::ReplicaState state = actuator::ReplicaState::kStarting;
    absl::Duration until;      // by the clock's Monotonic()
    absl::Status answer = {};  // to the last question
  };
  struct Seen {
    LiveProcessor processor;
    actuator::ReplicaState state = actuator::ReplicaState::kStarting;
    bool hangs = false;
  };
  struct Plan {
    std::vector<Seen> to_park, to_let_go, to_stay;
  };

  absl::StatusOr<std::string> JobOf(std::string_view target) ABSL_LOCKS_EXCLUDED(targets_mu_);
  // Asks the processors whose state is not known, and appends the errors of those that do not
  // answer to `trouble`.
  std::vector<Seen> LookLocked(const std::string& target, const std::string& job,
                               std::string* trouble) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  static Plan PlanOf(std::vector<Seen> seen, const actuator::Order& order);
  // Makes the call `verb` to each of `told`; returns how many answered OK.
  int TellLocked(const std::string& target, const std::string& job, const std::vector<Seen>& told,
                 WorkerCall verb, std::string* trouble) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const ProcessorDirectory processors_;
  base::Clock* const clock_;  // not owned
  actuator::OrderGate gate_{clock_};
  WorkerClient calls_;

  base::Mutex targets_mu_;
  Targets targets_ ABSL_GUARDED_BY(targets_mu_);

  // Serializes Observe and Apply; held during calls to processors, each of which has a time limit.
  base::Mutex mu_;
  // By target, then by instance.
  std::map<std::string, std::map<std::string, Known>> known_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::actuator::threads
