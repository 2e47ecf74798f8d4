// SPDX-License-Identifier: Apache-2.0
#include "muster/actuator/threads/threads_actuator.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/proto_time.h"
#include "muster/base/status.h"
#include "muster/rpc/status.h"

namespace muster::actuator::threads {

LiveProcessor FromHeartbeat(const v1::Heartbeat& heartbeat) {
  LiveProcessor processor{heartbeat.instance().instance(),
                          heartbeat.instance().address(),
                          base::FromProto(heartbeat.instance().started()),
                          {}};
  for (const v1::JobLoad& load : heartbeat.jobs()) {
    const bool listens = load.trouble().empty() || load.threads_max() > 0;
    if (listens) processor.jobs.insert(load.job());
  }
  return processor;
}

namespace {

using Verb = WorkerCall::Verb;

// Counts the calls that have not answered yet.
class Outstanding {
 public:
  void Begin() {
    base::MutexLock lock(&mu_);
    ++count_;
  }
  void End() {
    base::MutexLock lock(&mu_);
    --count_;
    changed_.NotifyAll();
  }
  void AwaitNone() {
    base::MutexLock lock(&mu_);
    while (count_ > 0) changed_.Wait(&mu_);
  }

 private:
  base::Mutex mu_;
  base::CondVar changed_;
  int count_ ABSL_GUARDED_BY(mu_) = 0;
};

// A processor works as long as any of its listeners does.
v1::ListenerPhase PhaseOf(const v1::QueryStateResponse& response) {
  std::set<v1::ListenerPhase> phases;
  for (const v1::ListenerState& listener : response.listeners()) phases.insert(listener.phase());
  for (const v1::ListenerPhase phase : {v1::LISTENER_PHASE_LISTENING, v1::LISTENER_PHASE_PAUSED,
                                        v1::LISTENER_PHASE_DRAINING, v1::LISTENER_PHASE_STOPPED}) {
    if (phases.count(phase) != 0) return phase;
  }
  return v1::LISTENER_PHASE_UNSPECIFIED;
}

// One running call, with the objects that gRPC needs until the answer.
class RunningCall {
 public:
  RunningCall(std::shared_ptr<v1::WorkerService::Stub> stub, const WorkerCall& call,
              absl::Duration limit, Outstanding* outstanding)
      : stub_(std::move(stub)), call_(call), context_(limit), outstanding_(outstanding) {}

  void Begin() {
    outstanding_->Begin();
    const auto done = [this](const grpc::Status& status) {
      status_ = rpc::FromGrpc(status);
      outstanding_->End();
    };
    auto* const async = stub_->async();
    switch (call_.verb) {
      case Verb::kQuery:
        query_.set_job(call_.job);
        return async->QueryState(&context_, &query_, &state_, done);
      case Verb::kPark:
        pause_.set_job(call_.job);
        pause_.set_for_lack_of_work(true);
        return async->Pause(&context_, &pause_, &paused_, done);
      case Verb::kLetGo:
        resume_.set_job(call_.job);
        return async->Resume(&context_, &resume_, &resumed_, done);
      case Verb::kSetTasks:
        set_.set_job(call_.job);
        set_.mutable_options()->set_max_dequeue_tasks(call_.tasks);
        return async->SetOptions(&context_, &set_, &were_set_, done);
    }
  }
  WorkerAnswer Answer() const { return {status_, PhaseOf(state_)}; }

 private:
  const std::shared_ptr<v1::WorkerService::Stub> stub_;
  const WorkerCall& call_;
  rpc::CallContext context_;
  Outstanding* const outstanding_;  // not owned
  v1::QueryStateRequest query_;
  v1::QueryStateResponse state_;
  v1::PauseRequest pause_;
  v1::PauseResponse paused_;
  v1::ResumeRequest resume_;
  v1::ResumeResponse resumed_;
  v1::SetOptionsRequest set_;
  v1::SetOptionsResponse were_set_;
  absl::Status status_;
};

}  // namespace

WorkerClient::WorkerClient(rpc::ChannelOptions channel, absl::Duration limit)
    : channel_(std::move(channel)), limit_(limit) {
  // The agent asks again each second, so gRPC need not retry.
  channel_.retry_unavailable = false;
}

std::vector<WorkerAnswer> WorkerClient::Make(const std::vector<WorkerCall>& calls) {
  Outstanding outstanding;
  std::vector<std::unique_ptr<RunningCall>> running(calls.size());
  std::vector<WorkerAnswer> answers(calls.size());
  for (size_t i = 0; i < calls.size(); ++i) {
    absl::StatusOr<std::shared_ptr<Stub>> stub = StubOf(calls[i].address);
    answers[i].status = stub.status();
    if (!stub.ok()) continue;
    running[i] = std::make_unique<RunningCall>(*std::move(stub), calls[i], limit_, &outstanding);
    running[i]->Begin();
  }
  outstanding.AwaitNone();
  for (size_t i = 0; i < calls.size(); ++i) {
    if (running[i] != nullptr) answers[i] = running[i]->Answer();
  }
  return answers;
}

void WorkerClient::KeepOnly(const std::vector<std::string>& addresses) {
  const std::set<std::string> kept(addresses.begin(), addresses.end());
  std::map<std::string, std::shared_ptr<Stub>> gone;  // destroyed after the lock is released
  base::MutexLock lock(&mu_);
  for (auto stub = stubs_.begin(); stub != stubs_.end();) {
    const auto next = std::next(stub);
    if (kept.count(stub->first) == 0) gone.insert(stubs_.extract(stub));
    stub = next;
  }
}

size_t WorkerClient::connections() const {
  base::MutexLock lock(&mu_);
  return stubs_.size();
}

absl::StatusOr<std::shared_ptr<WorkerClient::Stub>> WorkerClient::StubOf(
    const std::string& address) {
  base::MutexLock lock(&mu_);
  std::shared_ptr<Stub>& stub = stubs_[address];
  if (stub == nullptr) {
    const auto channel = rpc::OpenChannel(address, channel_);
    MUSTER_RETURN_IF_ERROR(channel.status());
    stub = v1::WorkerService::NewStub(*channel);
  }
  return stub;
}

namespace {

using actuator::Replica;
using actuator::ReplicaState;
using Verb = WorkerCall::Verb;

ReplicaState StateOf(const WorkerAnswer& answer) {
  if (!answer.status.ok()) return ReplicaState::kStarting;
  switch (answer.phase) {
    case v1::LISTENER_PHASE_LISTENING:
      return ReplicaState::kReady;
    case v1::LISTENER_PHASE_PAUSED:
      return ReplicaState::kParked;
    case v1::LISTENER_PHASE_DRAINING:
    case v1::LISTENER_PHASE_STOPPED:
      return ReplicaState::kDraining;
    default:
      return ReplicaState::kStarting;  // the processor has no listener yet
  }
}

// If one that hangs were asked at each look, no order would be carried out before it expires.
absl::Duration BelievedFor(const absl::Status& answer) {
  if (answer.ok()) return kBelievedFor;
  return absl::IsDeadlineExceeded(answer) ? kHangBelievedFor : absl::ZeroDuration();
}

// The processors that work for `job` and have an address.
std::vector<LiveProcessor> ProcessorsOf(std::vector<LiveProcessor> processors,
                                        const std::string& job) {
  std::erase_if(processors, [&job](const LiveProcessor& processor) {
    return processor.address.empty() || (!job.empty() && processor.jobs.count(job) == 0);
  });
  return processors;
}

std::vector<std::string> AddressesOf(const std::vector<LiveProcessor>& processors) {
  std::vector<std::string> addresses;
  addresses.reserve(processors.size());
  for (const LiveProcessor& processor : processors) addresses.push_back(processor.address);
  return addresses;
}

void AddIssue(const LiveProcessor& processor, const absl::Status& why, std::string* trouble) {
  absl::StrAppend(trouble, trouble->empty() ? "" : "; ", processor.instance, " at ",
                  processor.address, ": ", why.ToString());
}

std::string DetailOf(const actuator::Order& order, int before, int after, int present,
                     const std::string& trouble) {
  std::string text = absl::StrCat("of ", present, " processors ", before, " were at work, and ",
                                  after, " are to be");
  if (order.replicas > present) {
    absl::StrAppend(&text, "; ", order.replicas, " were ordered, and this actuator makes none");
  }
  if (order.tasks > 0) absl::StrAppend(&text, "; ", order.tasks, " dequeue tasks each");
  if (!trouble.empty()) absl::StrAppend(&text, "; ", trouble);
  return text;
}

}  // namespace

ThreadsActuator::ThreadsActuator(Options options, base::Clock* clock)
    : processors_(std::move(options.processors)),
      clock_(clock),
      calls_(std::move(options.channel), options.call_limit),
      targets_(std::move(options.targets)) {}

void ThreadsActuator::SetTargets(Targets targets) {
  base::MutexLock lock(&targets_mu_);
  targets_ = std::move(targets);
}

absl::StatusOr<std::string> ThreadsActuator::JobOf(std::string_view target) {
  base::MutexLock lock(&targets_mu_);
  const auto found = targets_.find(target);
  if (found != targets_.end()) return found->second;
  return absl::NotFoundError(absl::StrCat("there is no target '", std::string(target), "'"));
}

absl::StatusOr<actuator::TargetState> ThreadsActuator::Observe(std::string_view target) {
  MUSTER_ASSIGN_OR_RETURN(const std::string job, JobOf(target));
  base::MutexLock lock(&mu_);
  actuator::TargetState state;
  for (const Seen& seen : LookLocked(std::string(target), job, &state.trouble)) {
    if (seen.state == ReplicaState::kReady || seen.state == ReplicaState::kStarting) {
      ++state.wanted;
    }
    state.replicas.push_back(
        {seen.processor.instance, seen.processor.instance, seen.state, seen.processor.started});
  }
  return state;
}

absl::StatusOr<actuator::Outcome> ThreadsActuator::Apply(const actuator::Order& order) {
  MUSTER_RETURN_IF_ERROR(gate_.Admit(order));
  MUSTER_ASSIGN_OR_RETURN(const std::string job, JobOf(order.target));
  base::MutexLock lock(&mu_);
  std::string trouble;
  const std::vector<Seen> seen = LookLocked(order.target, job, &trouble);
  // While this order waited, another order may have come first, or another agent may lead.
  MUSTER_RETURN_IF_ERROR(gate_.Admit(order));
  Plan plan = PlanOf(seen, order);
  const int before = static_cast<int>(plan.to_stay.size() + plan.to_park.size());
  // One that does not answer cannot be set, and trying it would take all the time of the order.
  std::vector<Seen> to_set = plan.to_let_go;
  std::copy_if(plan.to_stay.begin(), plan.to_stay.end(), std::back_inserter(to_set),
               [](const Seen& one) { return one.state == ReplicaState::kReady; });
  // Set the tasks before resuming processors: a resumed processor would otherwise start its old,
  // possibly larger, number of threads at once.
  if (order.tasks > 0) {
    TellLocked(order.target, job, to_set, {"", job, Verb::kSetTasks, order.tasks}, &trouble);
    // One may hang, and another agent may lead by now.
    MUSTER_RETURN_IF_ERROR(gate_.Admit(order));
  }
  const bool changes_none = plan.to_let_go.empty() && plan.to_park.empty();
  // It is parked once it answers. Told with each order, it would use up the time of them all.
  std::erase_if(plan.to_park, [](const Seen& one) { return one.hangs; });
  const int let_go =
      TellLocked(order.target, job, plan.to_let_go, {"", job, Verb::kLetGo}, &trouble);
  const int parked = TellLocked(order.target, job, plan.to_park, {"", job, Verb::kPark}, &trouble);
  if (let_go + parked == 0 && !changes_none) {
    return absl::UnavailableError(absl::StrCat("no processor could be told: ", trouble));
  }
  const int after = before + let_go - parked;
  return actuator::Outcome{before, after,
                           DetailOf(order, before, after, static_cast<int>(seen.size()), trouble)};
}

std::vector<ThreadsActuator::Seen> ThreadsActuator::LookLocked(const std::string& target,
                                                               const std::string& job,
                                                               std::string* trouble) {
  const std::vector<LiveProcessor> live = processors_();
  const std::vector<LiveProcessor> processors = ProcessorsOf(live, job);
  const absl::Duration now = clock_->Monotonic();
  const std::map<std::string, Known> before = std::exchange(known_[target], {});
  std::map<std::string, Known>& known = known_[target];
  std::vector<WorkerCall> calls;
  std::vector<const LiveProcessor*> asked;
  for (const LiveProcessor& processor : processors) {
    const auto one = before.find(processor.instance);
    if (one != before.end() && one->second.until > now &&
        one->second.address == processor.address) {
      known.insert(*one);
    } else {
      calls.push_back({processor.address, job, Verb::kQuery});
      asked.push_back(&processor);
    }
  }
  const std::vector<WorkerAnswer> answers = calls_.Make(calls);
  for (size_t i = 0; i < answers.size(); ++i) {
    const absl::Status& status = answers[i].status;
    known[asked[i]->instance] = {asked[i]->address, StateOf(answers[i]), now + BelievedFor(status),
                                 status};
  }
  std::vector<Seen> seen;
  seen.reserve(processors.size());
  for (const LiveProcessor& processor : processors) {
    const Known& one = known[processor.instance];
    if (!one.answer.ok()) AddIssue(processor, one.answer, trouble);
    seen.push_back({processor, one.state, absl::IsDeadlineExceeded(one.answer)});
  }
  calls_.KeepOnly(AddressesOf(live));  // keeps the connections of other targets' processors
  return seen;
}

// Processors that do not answer count as at work, because they may be. The order of parking: the
// processors that the order names, then those that do not answer, then the newest. The order of
// resuming: the oldest parked processor first.
ThreadsActuator::Plan ThreadsActuator::PlanOf(std::vector<Seen> seen,
                                              const actuator::Order& order) {
  const actuator::ScaleDownOrder departures(order.let_go_first);
  const auto rank = [&departures](const Seen& one) {
    return departures.RankOf(one.processor.instance, one.state, one.processor.started);
  };
  std::sort(seen.begin(), seen.end(),
            [&rank](const Seen& a, const Seen& b) { return rank(a) < rank(b); });
  const auto is_at_work = [](const Seen& one) {
    return one.state == ReplicaState::kReady || one.state == ReplicaState::kStarting;
  };
  auto surplus = std::count_if(seen.begin(), seen.end(), is_at_work) - order.replicas;
  Plan plan;
  for (const Seen& one : seen) {
    if (!is_at_work(one)) continue;
    (surplus-- > 0 ? plan.to_park : plan.to_stay).push_back(one);
  }
  auto missing = order.replicas - static_cast<int64_t>(plan.to_stay.size());
  for (auto one = seen.rbegin(); one != seen.rend(); ++one) {
    if (one->state == ReplicaState::kParked && missing-- > 0) plan.to_let_go.push_back(*one);
  }
  return plan;
}

int ThreadsActuator::TellLocked(const std::string& target, const std::string& job,
                                const std::vector<Seen>& told, WorkerCall verb,
                                std::string* trouble) {
  std::vector<WorkerCall> calls;
  calls.reserve(told.size());
  for (const Seen& one : told) {
    verb.address = one.processor.address;
    calls.push_back(verb);
  }
  const std::vector<WorkerAnswer> answers = calls_.Make(calls);
  int answered = 0;
  for (size_t i = 0; i < answers.size(); ++i) {
    Known& known = known_[target][told[i].processor.instance];
    if (!answers[i].status.ok()) {
      // The processor may have carried out the call although the answer is missing: ask again.
      known.until = -absl::InfiniteDuration();
      AddIssue(told[i].processor, answers[i].status, trouble);
      continue;
    }
    ++answered;
    if (verb.verb == Verb::kSetTasks) continue;
    known = {told[i].processor.address,
             verb.verb == Verb::kPark ? ReplicaState::kParked : ReplicaState::kReady,
             clock_->Monotonic() + kBelievedFor};
  }
  return answered;
}

}  // namespace muster::actuator::threads
