// SPDX-License-Identifier: Apache-2.0
#include "muster/actuator/process/process_actuator.h"

#include <sys/wait.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/quantity.h"
#include "muster/base/status.h"
#include "muster/os/durable_file.h"

namespace muster::actuator::process {

namespace {

using actuator::ReplicaState;

std::string AgentsFile(const std::string& folder) { return absl::StrCat(folder, "/agents"); }
std::string LockFile(const std::string& folder) { return absl::StrCat(folder, "/lock"); }
std::string OrdersFile(const std::string& folder) { return absl::StrCat(folder, "/orders"); }

// The replicas of `target` that were not told to end.
std::vector<const LivingReplica*> ServingOf(std::string_view target,
                                            const std::vector<LivingReplica>& living) {
  std::vector<const LivingReplica*> serving;
  for (const LivingReplica& replica : living) {
    if (replica.record.target == target && replica.state != ReplicaState::kDraining) {
      serving.push_back(&replica);
    }
  }
  return serving;
}

std::vector<std::string> CommandOf(const Program& program) {
  std::vector<std::string> command = program.arguments;
  command.insert(command.begin(), program.path);
  return command;
}

// Its environment may differ: it says how the replica runs, and not what it works on.
bool IsOutdated(const LivingReplica& replica, const Program& program) {
  return !replica.record.program.empty() && replica.record.program != CommandOf(program);
}

ServingCount CountServing(std::string_view target, const Program& program,
                          const std::vector<LivingReplica>& living) {
  ServingCount count;
  for (const LivingReplica* replica : ServingOf(target, living)) {
    const bool is_ready = replica->state == ReplicaState::kReady;
    ++(IsOutdated(*replica, program) ? count.outdated : is_ready ? count.ready : count.starting);
  }
  return count;
}

std::string DescribeDeparted(const DepartedReplica& departed) {
  std::string text =
      absl::StrCat(departed.record.instance, " ", departed.end.how, " after ",
                   base::DurationToString(absl::Trunc(departed.end.ran, absl::Milliseconds(1))));
  if (!departed.end.last_lines.empty()) absl::StrAppend(&text, ": ", departed.end.last_lines);
  return text;
}

struct IsUnknown {
  const Targets& targets;

  bool operator()(std::string_view target) const { return targets.find(target) == targets.end(); }
  template <typename Value>
  bool operator()(const std::pair<const std::string, Value>& of_target) const {
    return (*this)(of_target.first);
  }
};

// For the agent, NotFound means an unknown target, so a missing program becomes Unavailable.
absl::Status OfProgram(const absl::Status& status) {
  if (!absl::IsNotFound(status)) return status;
  return absl::UnavailableError(status.message());
}

absl::Status CheckBounds(const actuator::Order& order) {
  if (order.replicas <= kMaxReplicas) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("target '", order.target, "' cannot have ",
                                                 order.replicas, " processes on one host; at most ",
                                                 kMaxReplicas));
}

std::string DetailOf(const actuator::Order& order, int before, const std::string& trouble) {
  std::string text = absl::StrCat("processes of this host for ", order.target, ": ");
  if (before == order.replicas) {
    absl::StrAppend(&text, before, ", as before");
  } else {
    absl::StrAppend(&text, "from ", before, " to ", order.replicas);
  }
  if (!trouble.empty()) absl::StrAppend(&text, "; ", trouble);
  return text;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ProcessActuator>> ProcessActuator::Open(Options options,
                                                                       base::Clock* clock) {
  std::error_code error;
  // Keepers and programs receive paths below the folder and may run in another working directory.
  options.folder = std::filesystem::absolute(options.folder, error).string();
  if (error) return absl::ErrnoToStatus(error.value(), "the state folder");
  std::unique_ptr<ProcessActuator> opened(new ProcessActuator(std::move(options), clock));
  base::MutexLock lock(&opened->mu_);
  MUSTER_RETURN_IF_ERROR(opened->store_.Create());
  MUSTER_ASSIGN_OR_RETURN(opened->presence_, AnnounceAgent(AgentsFile(opened->options_.folder)));
  MUSTER_ASSIGN_OR_RETURN(const Session session, opened->BeginLocked());
  if (!session.living.empty()) {
    base::Log(base::kInfo, "replicas of an earlier agent are adopted",
              {{"folder", opened->options_.folder}, {"replicas", session.living.size()}});
  }
  return opened;
}

ProcessActuator::ProcessActuator(Options options, base::Clock* clock)
    : options_(std::move(options)),
      clock_(clock),
      store_(options_.folder),
      targets_(options_.targets) {}

void ProcessActuator::SetTargets(Targets targets) {
  base::MutexLock lock(&mu_);
  targets_ = std::move(targets);
}

absl::StatusOr<actuator::TargetState> ProcessActuator::Observe(std::string_view target) {
  base::MutexLock lock(&mu_);
  MUSTER_ASSIGN_OR_RETURN(const Program program, FindLocked(target));
  MUSTER_ASSIGN_OR_RETURN(Session session, BeginLocked());
  // A failed start goes into `trouble` and must not hide the replicas that exist.
  FulfilLocked(std::string(target), program, {}, &session).IgnoreError();
  WriteMetricsTargetsLocked(session.living);
  actuator::TargetState state;
  state.wanted = session.orders.WantedOf(target);
  for (const LivingReplica& replica : session.living) {
    if (replica.record.target == target) state.replicas.push_back(replica.AsReplica());
  }
  state.trouble = HealthTroublesLocked(target);
  return state;
}

absl::StatusOr<actuator::Outcome> ProcessActuator::Apply(const actuator::Order& order) {
  MUSTER_RETURN_IF_ERROR(gate_.Admit(order));
  MUSTER_RETURN_IF_ERROR(CheckBounds(order));
  base::MutexLock lock(&mu_);
  MUSTER_ASSIGN_OR_RETURN(const Program program, FindLocked(order.target));
  MUSTER_ASSIGN_OR_RETURN(Session session, BeginLocked(order));
  DesiredState& orders = session.orders;
  const int before = orders.WantedOf(order.target);
  const DesiredState known = orders;
  orders.highest_token = order.fencing_token;
  orders.wanted[order.target] = order.replicas;
  // Write the token before acting on the order: after a crash, orders with an older token must
  // still be refused.
  if (orders != known)
    MUSTER_RETURN_IF_ERROR(WriteDesiredState(OrdersFile(options_.folder), orders));
  MUSTER_RETURN_IF_ERROR(FulfilLocked(order.target, program, order.let_go_first, &session));
  return actuator::Outcome{before, order.replicas,
                           DetailOf(order, before, HealthTroublesLocked(order.target))};
}

absl::Status ProcessActuator::LetGoOfUnknown(int64_t fencing_token, absl::Duration not_after) {
  actuator::Order order;
  order.target = "targets that are none any more";
  order.fencing_token = fencing_token;
  order.not_after = not_after;
  MUSTER_RETURN_IF_ERROR(gate_.Admit(order));
  base::MutexLock lock(&mu_);
  MUSTER_ASSIGN_OR_RETURN(Session session, BeginLocked(order));
  const IsUnknown is_unknown{targets_};
  // Written before acting, as in Apply. An agent that still knows such a target, and led before,
  // must not replace what goes.
  const DesiredState known = session.orders;
  session.orders.highest_token = fencing_token;
  std::erase_if(session.orders.wanted, is_unknown);
  if (session.orders != known) {
    MUSTER_RETURN_IF_ERROR(WriteDesiredState(OrdersFile(options_.folder), session.orders));
  }
  std::erase_if(backoffs_, is_unknown);
  absl::Status done;
  for (const LivingReplica& living : session.living) {
    const std::string& target = living.record.target;
    if (!is_unknown(target) || living.state == ReplicaState::kDraining) continue;
    base::Log(base::kInfo, "a replica goes, because its target is none any more",
              {{"target", target}, {"replica", living.record.instance}});
    done.Update(store_.LetGo(living));
  }
  WriteMetricsTargetsLocked(session.living);
  return done;
}

absl::StatusOr<Program> ProcessActuator::FindLocked(std::string_view target) const {
  const auto found = targets_.find(target);
  if (found == targets_.end()) {
    return absl::NotFoundError(absl::StrCat("there is no target '", std::string(target), "'"));
  }
  return found->second;
}

absl::StatusOr<ProcessActuator::Session> ProcessActuator::BeginLocked() {
  Session session;
  MUSTER_ASSIGN_OR_RETURN(session.lock, LockFolder(LockFile(options_.folder), kLockLimit));
  MUSTER_ASSIGN_OR_RETURN(session.orders, ReadDesiredState(OrdersFile(options_.folder)));
  WaitForKeepersLocked();
  ReplicaInventory stock = store_.TakeInventory();
  const DesiredState known = session.orders;
  const auto withdraw = [&session](const std::string& target) {
    const auto wanted = session.orders.wanted.find(target);
    if (wanted != session.orders.wanted.end() && wanted->second > 0) --wanted->second;
  };
  for (const LivingReplica& living : stock.living) {
    if (living.was_unattended) withdraw(living.record.target);
    // The agent that marked it may have died before it sent the signal.
    if (living.state == ReplicaState::kDraining) store_.LetGo(living).IgnoreError();
  }
  for (const DepartedReplica& departed : stock.departed) {
    if (departed.departure == Departure::kUnattended) withdraw(departed.record.target);
  }
  if (session.orders != known) {
    MUSTER_RETURN_IF_ERROR(WriteDesiredState(OrdersFile(options_.folder), session.orders));
  }
  // Clear only the marks that were counted above: a keeper may have marked another replica
  // meanwhile.
  for (const LivingReplica& living : stock.living) {
    if (living.was_unattended) living.folder.Clear(Mark::kUnattended);
  }
  for (const DepartedReplica& departed : stock.departed) DischargeLocked(departed);
  bool all_gone = true;
  for (const ReplicaFolder& folder : stock.without_record) all_gone &= store_.Discard(folder);
  session.living = all_gone ? std::move(stock.living) : store_.TakeInventory().living;
  return session;
}

absl::StatusOr<ProcessActuator::Session> ProcessActuator::BeginLocked(
    const actuator::Order& order) {
  MUSTER_ASSIGN_OR_RETURN(Session session, BeginLocked());
  // The order may have expired while this call waited for the folder's lock.
  MUSTER_RETURN_IF_ERROR(gate_.Admit(order));
  if (order.fencing_token >= session.orders.highest_token) return session;
  const absl::Status stale = actuator::StaleToken(order, session.orders.highest_token);
  return absl::Status(
      stale.code(),
      absl::StrCat(stale.message(), "; if the mesh's records began anew, make it 0 in ",
                   OrdersFile(options_.folder)));
}

void ProcessActuator::DischargeLocked(const DepartedReplica& departed) {
  if (departed.departure == Departure::kFailed) {
    const std::string why = DescribeDeparted(departed);
    base::Log(base::kWarning, "a replica ended without an order",
              {{"target", departed.record.target}, {"why", why}});
    backoffs_[departed.record.target].OnFailure(departed.end.ran, why, clock_->Monotonic());
  }
  store_.Discharge(departed);
}

absl::Status ProcessActuator::FulfilLocked(const std::string& target, const Program& program,
                                           const std::vector<std::string>& let_go_first,
                                           Session* session) {
  const RollingUpdate update(session->orders.WantedOf(target), program.most);
  absl::Status done;
  if (const int count = update.ToStart(CountServing(target, program, session->living)); count > 0) {
    done = StartLocked(target, program, count);
    session->living = store_.TakeInventory().living;
  }
  // Counted anew, because a start may have failed, or wait.
  const RollingUpdate::Departures departures =
      update.ToLetGo(CountServing(target, program, session->living));
  if (departures.outdated + departures.surplus > 0) {
    done.Update(ShrinkLocked(target, program, let_go_first, departures, *session));
    session->living = store_.TakeInventory().living;
  }
  return done;
}

absl::Status ProcessActuator::StartLocked(const std::string& target, const Program& program,
                                          int count) {
  RestartBackoff& backoff = backoffs_[target];
  const absl::Duration now = clock_->Monotonic();
  if (backoff.WaitAt(now) > absl::ZeroDuration()) return backoff.refusal();
  StartPlan plan{options_.keeper,
                 target,
                 CommandOf(program),
                 program.environment,
                 AgentsFile(options_.folder),
                 options_.drain_grace,
                 options_.kill_slack,
                 options_.unattended_limit};
  std::vector<pid_t> keepers;
  const absl::Status started = OfProgram(store_.Start(plan, count, &keepers));
  keepers_.insert(keepers.begin(), keepers.end());
  if (started.ok()) {
    backoff.OnStart(now);
  } else {
    backoff.OnRefusal(started, now);
  }
  return started;
}

absl::Status ProcessActuator::ShrinkLocked(const std::string& target, const Program& program,
                                           const std::vector<std::string>& let_go_first,
                                           const RollingUpdate::Departures& departures,
                                           const Session& session) {
  const std::vector<const LivingReplica*> serving = ServingOf(target, session.living);
  std::vector<actuator::Replica> outdated, replicas;
  for (const LivingReplica* replica : serving) {
    if (IsOutdated(*replica, program)) outdated.push_back(replica->AsReplica());
  }
  const std::vector<std::string> replaced =
      ChooseForScaleDown(std::move(outdated), let_go_first, departures.outdated);
  std::set<std::string> to_go(replaced.begin(), replaced.end());
  for (const LivingReplica* replica : serving) {
    if (to_go.count(replica->record.instance) == 0) replicas.push_back(replica->AsReplica());
  }
  for (std::string& chosen :
       ChooseForScaleDown(std::move(replicas), let_go_first, departures.surplus)) {
    to_go.insert(std::move(chosen));
  }
  for (const LivingReplica* replica : serving) {
    if (to_go.count(replica->record.instance) != 0) {
      MUSTER_RETURN_IF_ERROR(store_.LetGo(*replica));
    }
  }
  return absl::OkStatus();
}

void ProcessActuator::WriteMetricsTargetsLocked(const std::vector<LivingReplica>& living) {
  if (options_.metrics_targets.empty()) return;
  std::string text = EncodeMetricsTargets(living);
  if (text == metrics_targets_) return;
  if (const absl::Status written = os::ReplaceFile(options_.metrics_targets, text); !written.ok()) {
    base::Log(base::kWarning, "Prometheus is not told where the replicas are",
              {{"why", written.ToString()}});
    return;
  }
  metrics_targets_ = std::move(text);
}

// Keepers that this process started become zombies until it waits for them. Adopted keepers are not
// its children.
void ProcessActuator::WaitForKeepersLocked() {
  for (auto keeper = keepers_.begin(); keeper != keepers_.end();) {
    const pid_t waited = waitpid(*keeper, nullptr, WNOHANG);
    const bool gone = waited == *keeper || (waited < 0 && errno == ECHILD);
    keeper = gone ? keepers_.erase(keeper) : std::next(keeper);
  }
}

std::string ProcessActuator::HealthTroublesLocked(std::string_view target) {
  const auto backoff = backoffs_.find(target);
  return backoff == backoffs_.end() ? "" : backoff->second.Tell(clock_->Monotonic());
}

}  // namespace muster::actuator::process
