#include "muster/scaling/actuator/threads/threads_actuator.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/scaling/actuator/departure_order.h"

namespace muster::scaling::actuator::threads {
namespace {

using scaling::actuator::Replica;
using scaling::actuator::ReplicaState;
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
      return ReplicaState::kStarting;  // it has no listener yet
  }
}

// Those that work for `job`, and can be called.
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

std::string DetailOf(const scaling::actuator::Order& order, int before, int after, int present,
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

absl::StatusOr<scaling::actuator::TargetState> ThreadsActuator::Observe(std::string_view target) {
  MUSTER_ASSIGN_OR_RETURN(const std::string job, JobOf(target));
  base::MutexLock lock(&mu_);
  scaling::actuator::TargetState state;
  for (const Seen& seen : LookLocked(std::string(target), job, &state.trouble)) {
    if (seen.state == ReplicaState::kReady || seen.state == ReplicaState::kStarting) {
      ++state.wanted;
    }
    state.replicas.push_back(
        {seen.processor.instance, seen.processor.instance, seen.state, seen.processor.started});
  }
  return state;
}

absl::StatusOr<scaling::actuator::Outcome> ThreadsActuator::Apply(
    const scaling::actuator::Order& order) {
  MUSTER_RETURN_IF_ERROR(gate_.Admit(order));
  MUSTER_ASSIGN_OR_RETURN(const std::string job, JobOf(order.target));
  base::MutexLock lock(&mu_);
  std::string trouble;
  const std::vector<Seen> seen = LookLocked(order.target, job, &trouble);
  // Another order may have come first while this one waited, or another leader.
  MUSTER_RETURN_IF_ERROR(gate_.Admit(order));
  const Plan plan = PlanOf(seen, order);
  const int before = static_cast<int>(plan.to_stay.size() + plan.to_park.size());
  std::vector<Seen> at_work = plan.to_stay;
  at_work.insert(at_work.end(), plan.to_let_go.begin(), plan.to_let_go.end());
  // Before they are let go: a thread too many is there at once, and one too few is not.
  if (order.tasks > 0) {
    TellLocked(order.target, job, at_work, {"", job, Verb::kSetTasks, order.tasks}, &trouble);
  }
  const int let_go =
      TellLocked(order.target, job, plan.to_let_go, {"", job, Verb::kLetGo}, &trouble);
  const int parked = TellLocked(order.target, job, plan.to_park, {"", job, Verb::kPark}, &trouble);
  if (let_go + parked == 0 && !(plan.to_let_go.empty() && plan.to_park.empty())) {
    return absl::UnavailableError(absl::StrCat("no processor could be told: ", trouble));
  }
  const int after = before + let_go - parked;
  return scaling::actuator::Outcome{
      before, after, DetailOf(order, before, after, static_cast<int>(seen.size()), trouble)};
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
    // One that did not answer is asked again at the next look.
    known[asked[i]->instance] = {asked[i]->address, StateOf(answers[i]),
                                 status.ok() ? now + kBelievedFor : now};
    if (!status.ok()) AddIssue(*asked[i], status, trouble);
  }
  std::vector<Seen> seen;
  seen.reserve(processors.size());
  for (const LiveProcessor& processor : processors) {
    seen.push_back({processor, known[processor.instance].state});
  }
  calls_.KeepOnly(AddressesOf(live));  // other targets' too
  return seen;
}

// Those that do not answer count as at work, because they may be. They are the first to be parked
// after the named ones; of the others the newest. Of the parked the oldest is let go first.
ThreadsActuator::Plan ThreadsActuator::PlanOf(std::vector<Seen> seen,
                                              const scaling::actuator::Order& order) {
  const scaling::actuator::ScaleDownOrder departures(order.let_go_first);
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
      // It may have been done all the same.
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

}  // namespace muster::scaling::actuator::threads
