// The bounds of the threads actuator, each with its reason.
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
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/rpc/channel.h"
#include "muster/scaling/actuator/actuator.h"
#include "muster/scaling/actuator/orders.h"
#include "muster/v1/heartbeat.pb.h"
#include "muster/v1/worker_service.grpc.pb.h"

namespace muster::scaling::actuator::threads {

// What a processor may take to answer a call. It answers from memory, save for the depths of its
// queues, and an agent looks each second.
inline constexpr absl::Duration kCallLimit = absl::Seconds(5);

// How long a processor's state is believed that this actuator knows or has changed itself: asking
// costs the queue store a call for each partition, and only people change it behind the agent's
// back.
inline constexpr absl::Duration kBelievedFor = absl::Seconds(30);

// Which processors there are.

struct LiveProcessor {
  std::string instance;
  std::string address;  // HOST:PORT of its WorkerService
  absl::Time started;
  std::set<std::string> jobs;  // that it works for
};

// As it tells in its heartbeats.
LiveProcessor FromHeartbeat(const v1::Heartbeat& heartbeat);

// Those that are there now and do not leave, as of bus::Roster. Thread-safe, and does not block.
using ProcessorDirectory = std::function<std::vector<LiveProcessor>()>;

// WorkerClient: calls of many processors at a time, of which none waits for another.

// One processor's listeners of a job; an empty job: all of them.
struct WorkerCall {
  enum class Verb { kQuery, kPark, kLetGo, kSetTasks };

  std::string address;
  std::string job;
  Verb verb = Verb::kQuery;
  int tasks = 0;  // kSetTasks
};

// What it answered; a query the phase, too.
struct WorkerAnswer {
  absl::Status status;
  v1::ListenerPhase phase = v1::LISTENER_PHASE_UNSPECIFIED;
};

// Thread-safe.
class WorkerClient {
 public:
  WorkerClient(rpc::ChannelOptions channel, absl::Duration limit);

  // Answers in the order of `calls`, once all have answered or `limit` has passed, which is
  // DeadlineExceeded. Nothing is tried again.
  std::vector<WorkerAnswer> Make(const std::vector<WorkerCall>& calls);

  // Lets go of the connections to all other processors.
  void KeepOnly(const std::vector<std::string>& addresses);
  size_t connections() const;

 private:
  using Stub = v1::WorkerService::Stub;

  // Shared with calls that run while the processor is forgotten.
  absl::StatusOr<std::shared_ptr<Stub>> StubOf(const std::string& address);

  rpc::ChannelOptions channel_;  // as it was made
  const absl::Duration limit_;

  mutable base::Mutex mu_;
  std::map<std::string, std::shared_ptr<Stub>> stubs_ ABSL_GUARDED_BY(mu_);
};

// ThreadsActuator: for a fixed set of processors, which somebody else keeps running. It makes none
// and ends none; it tells those that there are how many dequeue tasks to have, and parks those that
// are not wanted: they take nothing more and stay warm.
//
// An order for more replicas than there are cannot be met: the outcome tells how many there are.
// Processors that come later work at once, and are parked by the next order if they are too many.

// By the targets' names: the job whose listeners are told. The target's replicas are the processors
// that work for it. Empty: all listeners of all processors.
using Targets = std::map<std::string, std::string, std::less<>>;

struct Options {
  Targets targets;
  ProcessorDirectory processors;
  rpc::ChannelOptions channel = {};
  absl::Duration call_limit = kCallLimit;
};

// Thread-safe.
class ThreadsActuator final : public scaling::actuator::Actuator {
 public:
  // `clock` is not owned.
  ThreadsActuator(Options options, base::Clock* clock);

  // From now on these are the targets: the rules have changed.
  void SetTargets(Targets targets);

  std::string_view kind() const override { return "threads"; }
  // A processor that does not answer is kStarting; `wanted` is how many are not parked. Asks each
  // processor once in kBelievedFor.
  absl::StatusOr<scaling::actuator::TargetState> Observe(std::string_view target) override;
  // `after` is how many are as they were told. Unavailable: none that had to be told answered.
  absl::StatusOr<scaling::actuator::Outcome> Apply(const scaling::actuator::Order& order) override;

  // To processors; none is kept to one that is gone.
  size_t connections() const { return calls_.connections(); }

 private:
  // What is known of a processor's listeners of one target.
  struct Known {
    std::string address;
    scaling::actuator::ReplicaState state = scaling::actuator::ReplicaState::kStarting;
    absl::Duration until;  // by the clock's Monotonic()
  };
  struct Seen {
    LiveProcessor processor;
    scaling::actuator::ReplicaState state = scaling::actuator::ReplicaState::kStarting;
  };
  struct Plan {
    std::vector<Seen> to_park, to_let_go, to_stay;
  };

  absl::StatusOr<std::string> JobOf(std::string_view target);
  // Asks those of whom it is not known, and adds why any does not answer to `trouble`.
  std::vector<Seen> LookLocked(const std::string& target, const std::string& job,
                               std::string* trouble) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  static Plan PlanOf(std::vector<Seen> seen, const scaling::actuator::Order& order);
  // How many of `told` answered.
  int TellLocked(const std::string& target, const std::string& job, const std::vector<Seen>& told,
                 WorkerCall verb, std::string* trouble) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const ProcessorDirectory processors_;
  base::Clock* const clock_;  // not owned
  scaling::actuator::OrderGate gate_{clock_};
  WorkerClient calls_;

  base::Mutex targets_mu_;
  Targets targets_ ABSL_GUARDED_BY(targets_mu_);

  // One call at a time; held while processors are asked, each of which has a limit.
  base::Mutex mu_;
  // By target, then by instance.
  std::map<std::string, std::map<std::string, Known>> known_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::scaling::actuator::threads
