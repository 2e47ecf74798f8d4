// SPDX-License-Identifier: Apache-2.0
#include "services/scaling-agent/agent.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/status.h"
#include "services/scaling-agent/limits.h"
#include "services/scaling-agent/queue_watch.h"

namespace muster::scaling_agent {
namespace {

constexpr Pace kElecting{kLeaseStep, kLeaseStep};
constexpr Pace kWatchingRules{kLookPeriod, kLookPeriod};
// Short, because a new leader decides nothing before it has ids.
constexpr Pace kKeepingRecords{absl::Milliseconds(250), absl::Milliseconds(250)};

v1::ScalingMode ModeToProto(scaling::rules::Mode mode) {
  switch (mode) {
    case scaling::rules::Mode::kObserve:
      return v1::SCALING_MODE_OBSERVE;
    case scaling::rules::Mode::kNotify:
      return v1::SCALING_MODE_NOTIFY;
    case scaling::rules::Mode::kAct:
      return v1::SCALING_MODE_ACT;
  }
  return v1::SCALING_MODE_UNSPECIFIED;
}

// Logs an error when it first appears or changes, and the recovery.
void LogChange(absl::string_view what, const absl::Status& status, std::string* said) {
  const std::string now = status.ok() ? "" : status.ToString();
  if (now == *said) return;
  *said = now;
  if (status.ok()) {
    base::Log(base::kInfo, "it works again", {{"what", what}});
  } else {
    base::Log(base::kWarning, "it does not work; it is tried until it does",
              {{"what", what}, {"why", now}});
  }
}

}  // namespace

Agent::Agent(AgentOptions options, AgentDependencies deps,
             std::unique_ptr<scaling::rules::RulesWatch> rules)
    : options_(std::move(options)),
      deps_(std::move(deps)),
      rules_(std::move(rules)),
      election_(options_.election, deps_.sync, deps_.clock),
      overrides_(deps_.sync, deps_.clock),
      decision_log_(deps_.clock),
      election_thread_(
          kElecting, [this] { HoldLead(); }, deps_.clock),
      rules_thread_(
          kWatchingRules, [this] { WatchRules(); }, deps_.clock),
      records_thread_(
          kKeepingRecords, [this] { KeepRecords(); }, deps_.clock) {}

Agent::~Agent() { Stop(); }

absl::Status Agent::Start() {
  if (subscription_ == nullptr) {
    MUSTER_ASSIGN_OR_RETURN(
        subscription_, deps_.bus->Subscribe([this](const bus::InterRoleCommunicationEvent& event) {
          OnTrigger(event);
        }));
  }
  {
    base::MutexLock lock(&mu_);
    if (std::exchange(has_begun_, true)) return absl::OkStatus();
  }
  UseRules();
  election_thread_.Start();
  rules_thread_.Start();
  records_thread_.Start();
  return absl::OkStatus();
}

void Agent::Stop() {
  {
    base::MutexLock lock(&mu_);
    if (std::exchange(has_stopped_, true)) return;
  }
  subscription_.reset();
  rules_thread_.Stop();
  for (const auto& loop : Targets()) loop->Stop();
  records_thread_.Stop();
  election_thread_.Stop();
  base::LogUnlessOk(base::kWarning, "the lead was not given up; it runs out by itself",
                    election_.Release());
  decision_log_.EndFollowers();
}

void Agent::OnTrigger(const bus::InterRoleCommunicationEvent& event) {
  const auto* const work = std::get_if<bus::CloudQueueWorkDetectedTriggerEvent>(&event.payload);
  if (work == nullptr || work->storage_account != options_.loop.account) return;
  for (const auto& loop : Targets()) loop->OnWork(work->queue_name, work->messages);
}

void Agent::HoldLead() {
  // While this agent does not lead, the leader may change the overrides.
  if (!leads()) overrides_.Forget();
  LogChange("the lease of the leader", election_.Hold().status(), &election_trouble_);
  const bool leads_now = leads();
  if (std::exchange(led_, leads_now) == leads_now) return;
  base::Log(base::kInfo, leads_now ? "leads" : "does not lead",
            {{"instance", options_.election.instance},
             {"token", election_.leader().token},
             {"leader", election_.leader().holder}});
  if (!leads_now) decision_log_.EndFollowers();
  for (const auto& loop : Targets()) loop->Wake();
}

void Agent::WatchRules() {
  PollRules();
  WatchJobs();
  LetGoOfUnknown();
}

// By the rules that have just been read: they may have changed while another agent led.
void Agent::LetGoOfUnknown() {
  if (!deps_.let_go_of_unknown || rules().rules->mode != scaling::rules::Mode::kAct) return;
  const std::optional<HeldToken> lead = election_.Held();
  if (!lead.has_value()) return;
  LogChange("letting go of targets that are none any more", deps_.let_go_of_unknown(*lead),
            &unknown_trouble_);
}

bool Agent::ReadJobs() {
  jobs_read_ = deps_.clock->Monotonic();
  std::vector<std::string> jobs = deps_.jobs ? deps_.jobs() : std::vector<std::string>();
  if (jobs == known_jobs_) return false;
  known_jobs_ = std::move(jobs);
  return true;
}

void Agent::WatchJobs() {
  if (!deps_.use_targets || !leads()) return;
  if (deps_.clock->Monotonic() - jobs_read_ < kJobsPeriod) return;
  const auto in_force = rules().rules;
  const bool knows_all =
      std::all_of(in_force->targets.begin(), in_force->targets.end(), [this](const auto& target) {
        return std::all_of(
            target.queues.begin(), target.queues.end(),
            [this](const std::string& queue) { return JobOf(queue, known_jobs_).has_value(); });
      });
  if (!knows_all && ReadJobs()) deps_.use_targets(*in_force, known_jobs_);
}

void Agent::PollRules() {
  const auto seen = rules_->Poll();
  if (seen == scaling::rules::RulesWatch::Seen::kNothingNew) return;
  const scaling::rules::ActiveRules::State state = rules();
  if (seen == scaling::rules::RulesWatch::Seen::kRefused) {
    base::Log(base::kWarning, "the changed rules are refused; those before stay in force",
              {{"revision", state.revision}, {"why", state.refusal.message()}});
    return;
  }
  base::Log(base::kInfo, "the changed rules are in force", {{"revision", state.revision}});
  UseRules();
}

void Agent::UseRules() {
  const scaling::rules::ActiveRules::State state = rules();
  const auto in_force =
      std::make_shared<const RulesInForce>(RulesInForce{state.rules, state.text, state.revision});
  Loops before;
  {
    base::MutexLock lock(&mu_);
    before = loops_;
  }
  Loops after;
  for (const scaling::rules::Target& target : state.rules->targets) {
    const auto found = before.find(target.id);
    if (found != before.end() && found->second->IsFor(target)) {
      after.insert(*found);
      before.erase(found);
    }
  }
  // A target has one loop at a time. Stop the replaced loops before the new ones start, and before
  // use_targets gives a name a new meaning: an old loop's order must not reach the new target.
  for (const auto& [name, loop] : before) {
    loop->Stop();
    if (state.rules->FindTarget(name) == nullptr) decision_log_.Forget(name);
  }
  if (deps_.use_targets) {
    ReadJobs();
    deps_.use_targets(*state.rules, known_jobs_);
  }
  for (const auto& [name, loop] : after) loop->UseRules(in_force);
  for (const scaling::rules::Target& target : state.rules->targets) {
    if (after.count(target.id) == 0) after[target.id] = MakeLoop(target, in_force);
  }
  {
    base::MutexLock lock(&mu_);
    loops_ = after;
  }
  for (const auto& [name, loop] : after) loop->Start();
}

std::shared_ptr<TargetLoop> Agent::MakeLoop(const scaling::rules::Target& target,
                                            const std::shared_ptr<const RulesInForce>& rules) {
  LoopOptions options = options_.loop;
  if (!options.recording.path.empty() && rules->rules->targets.size() > 1) {
    absl::StrAppend(&options.recording.path, ".", target.id);
  }
  LoopDependencies deps;
  deps.queues = deps_.queues;
  deps.sync = deps_.sync;
  deps.actuator = deps_.actuator;
  deps.overrides = &overrides_;
  deps.decision_log = &decision_log_;
  deps.clock = deps_.clock;
  deps.token = [this] { return election_.Held(); };
  deps.roster = deps_.roster;
  deps.initiators = deps_.initiators;
  deps.jobs = deps_.jobs;
  deps.on_desired = deps_.on_desired;
  deps.metrics = deps_.metrics;
  return std::make_shared<TargetLoop>(target, std::move(options), std::move(deps), rules);
}

void Agent::KeepRecords() {
  if (!leads()) return;
  absl::Status kept;
  const absl::Duration now = deps_.clock->Monotonic();
  if (!overrides_.is_known() || now - refreshed_ >= kOverridesPeriod) {
    kept.Update(overrides_.Refresh());
    refreshed_ = now;
  }
  for (const auto& loop : Targets()) kept.Update(loop->FillIds());
  LogChange("the records of the agents", kept, &records_trouble_);
}

void Agent::Wake(absl::string_view target) {
  if (const auto loop = Find(target)) loop->Wake();
}

absl::Status Agent::SetOverride(const Override& override) {
  MUSTER_RETURN_IF_ERROR(overrides_.Set(override));
  Wake(override.target);
  return absl::OkStatus();
}

absl::Status Agent::ClearOverride(const std::string& target) {
  MUSTER_RETURN_IF_ERROR(overrides_.Clear(target));
  Wake(target);
  return absl::OkStatus();
}

std::shared_ptr<TargetLoop> Agent::Find(absl::string_view target) const {
  base::MutexLock lock(&mu_);
  const auto found = loops_.find(target);
  return found == loops_.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<TargetLoop>> Agent::Targets() const {
  base::MutexLock lock(&mu_);
  std::vector<std::shared_ptr<TargetLoop>> targets;
  for (const auto& [name, loop] : loops_) targets.push_back(loop);
  return targets;
}

absl::StatusOr<Snapshot> Agent::Known(absl::string_view target, absl::string_view queue) const {
  std::shared_ptr<TargetLoop> found;
  for (const auto& loop : Targets()) {
    if (target.empty() ? loop->HasQueue(queue) : loop->name() == target) found = loop;
  }
  if (found == nullptr) {
    return absl::NotFoundError(target.empty()
                                   ? absl::StrCat("no target has a queue '", queue, "'")
                                   : absl::StrCat("the rules have no target '", target, "'"));
  }
  const std::optional<Snapshot> snapshot = found->snapshot();
  if (snapshot.has_value()) return *snapshot;
  return absl::UnavailableError(
      absl::StrCat("nothing was seen of the target '", found->name(), "' yet"));
}

v1::GetAgentResponse Agent::About() const {
  v1::GetAgentResponse about;
  const LeaderRecord leader = election_.leader();
  about.set_leads(leads());
  about.set_leader(leader.address);
  about.set_fencing_token(leader.token);
  about.set_actuator(std::string(deps_.actuator->kind()));
  const scaling::rules::ActiveRules::State state = rules();
  about.set_mode(ModeToProto(state.rules->mode));
  about.set_rules_revision(state.revision);
  about.set_rules_refusals(state.refusals);
  if (!state.refusal.ok()) about.set_rules_refusal(std::string(state.refusal.message()));
  return about;
}

}  // namespace muster::scaling_agent
