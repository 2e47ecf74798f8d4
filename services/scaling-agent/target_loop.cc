// SPDX-License-Identifier: Apache-2.0
#include "services/scaling-agent/target_loop.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "muster/base/log.h"
#include "muster/telemetry/catalogue.h"
#include "services/scaling-agent/limits.h"

namespace muster::scaling_agent {
namespace {

constexpr Pace kLooking{kLookPeriod, kLeastDecisionGap};
constexpr Pace kDeciding{kLookPeriod, kLeastDecisionGap, kGatherTriggers};

// Of the target, as far as their heartbeats tell: an agent that does not lead asks no platform.
int HeardReplicas(const FleetSigns& signs) {
  return static_cast<int>(
      std::count_if(signs.workers.begin(), signs.workers.end(),
                    [](const WorkerLoad& worker) { return worker.listens && !worker.silent; }));
}

}  // namespace

TargetLoop::TargetLoop(const scaling::rules::Target& target, LoopOptions options,
                       LoopDependencies deps, std::shared_ptr<const RulesInForce> rules)
    : target_(target),
      options_(std::move(options)),
      deps_(std::move(deps)),
      decisions_(deps_.metrics, telemetry::kScaleDecisions),
      watch_(options_.account, target.queues, deps_.queues, deps_.clock, deps_.jobs),
      actuation_(
          target.id, deps_.actuator, deps_.token,
          [this](const std::string& decision, const absl::StatusOr<actuator::Outcome>& outcome) {
            OnAnswer(decision, outcome);
          },
          deps_.clock),
      ids_(target.id, deps_.sync),
      rules_(std::move(rules)),
      policy_(target.id, options_.recording),
      fleet_(
          options_.speed, options_.max_tasks,
          telemetry::Histograms<1>(deps_.metrics, telemetry::kWorkerColdStart).With({target.id})),
      queues_thread_(
          kLooking, [this] { LookAtQueues(); }, deps_.clock),
      actuation_thread_(
          kLooking, [this] { Act(); }, deps_.clock),
      decides_thread_(
          kDeciding, [this] { Decide(); }, deps_.clock) {}

TargetLoop::~TargetLoop() { Stop(); }

void TargetLoop::Start() {
  queues_thread_.Start();
  actuation_thread_.Start();
  decides_thread_.Start();
}

void TargetLoop::Stop() {
  decides_thread_.Stop();
  actuation_thread_.Stop();
  queues_thread_.Stop();
  // Once only: another loop may have taken the target's name since the first Stop.
  if (std::exchange(told_end_, true)) return;
  SetDesired(std::nullopt);
}

// Wakes the decision only when readings appear after none were available; a decision a second
// covers the rest. Act does the same for the actuator's view.
void TargetLoop::LookAtQueues() {
  if (!deps_.token().has_value()) return;
  const bool was_blind = watch_.readings().empty();
  watch_.Look();
  if (was_blind && !watch_.readings().empty()) Wake();
}

void TargetLoop::Act() {
  if (!deps_.token().has_value()) return;
  const bool was_blind = !actuation_.view().is_fresh;
  actuation_.Step();
  if (was_blind && actuation_.view().is_fresh) Wake();
}

bool TargetLoop::IsFor(const scaling::rules::Target& target) const {
  return target.id == target_.id && target.kind == target_.kind && target.name == target_.name &&
         target.queues == target_.queues;
}

void TargetLoop::UseRules(std::shared_ptr<const RulesInForce> rules) {
  {
    base::MutexLock lock(&mu_);
    next_rules_ = std::move(rules);
  }
  Wake();
}

bool TargetLoop::HasQueue(absl::string_view queue) const {
  return !NameOf(queue, target_.queues).empty();
}

void TargetLoop::OnWork(absl::string_view queue, int64_t items) {
  if (!HasQueue(queue)) return;
  watch_.OnTrigger(queue);
  if (items > 0) {
    const absl::Time now = deps_.clock->Now();
    items = std::min(items, scaling::policy::kMaxItems);
    base::MutexLock lock(&mu_);
    if (announced_.size() < kMaxPendingAnnouncements) {
      announced_.push_back({now, items, 0});
    } else {
      int64_t& sum = announced_.back().items;
      sum = std::min(sum + items, scaling::policy::kMaxItems);
    }
  }
  Wake();
}

void TargetLoop::Wake() { decides_thread_.Wake(); }

void TargetLoop::Decide() {
  TakeRules();
  const bool leads = FollowLead();
  const absl::Time now = TimeOfDecision();
  const FleetSigns signs = SignsAt(now);
  std::vector<scaling::policy::QueueReading> queues = Readings();
  if (!leads || IsTooEarly(signs, queues)) {
    fleet_.Look(signs);  // so that an agent that takes over has learned speeds already
    if (!leads) policy_.Pay(now, HeardReplicas(signs));  // and what the budget has left
    return;
  }
  PassOnAnnouncements(now);
  int live = 0;
  Weighed weighed = Weigh(signs, std::move(queues), &live);
  const scaling::rules::Range range = rules_->rules->FindTarget(name())->range;
  KeepAtLeast(UnseenReplicas(signs, live, weighed), &weighed);
  KeepWaiting(&weighed);
  Demand(deps_.overrides->Of(name()), range, &weighed);
  BoundStandby(range.max, &weighed);
  // The policy must not count on them; people see them with those on standby.
  weighed.observation.fleet.parked += weighed.waiting;
  NoteSeen(weighed.observation);
  Conclude(weighed);
}

void TargetLoop::TakeRules() {
  std::shared_ptr<const RulesInForce> next;
  {
    base::MutexLock lock(&mu_);
    next = std::exchange(next_rules_, nullptr);
  }
  if (next == nullptr) return;
  rules_ = std::move(next);
  if (!term_.has_value()) return;
  base::LogUnlessOk(base::kError, "a target goes on by its old rules", policy_.Use(*rules_),
                    {{"target", name()}});
}

// True: this agent leads, and its term has begun.
bool TargetLoop::FollowLead() {
  const std::optional<HeldToken> held = deps_.token();
  if (held.has_value() && (!term_.has_value() || term_->token != held->token)) {
    BeginTerm(held->token);
  }
  if (!held.has_value() && term_.has_value()) {
    term_.reset();
    actuation_.Rest();
  }
  if (term_.has_value()) return true;
  SetDesired(std::nullopt);
  base::MutexLock lock(&mu_);
  announced_.clear();  // the queues' statistics will show this work
  return false;
}

void TargetLoop::SetDesired(std::optional<int> desired) {
  {
    base::MutexLock lock(&mu_);
    desired_ = desired;
  }
  if (deps_.on_desired) deps_.on_desired(name(), desired);
}

void TargetLoop::BeginTerm(int64_t token) {
  actuation_.Rest();
  if (desired().has_value()) SetDesired(std::nullopt);  // what the term before wanted is over
  const absl::Status begun = policy_.Begin(*rules_);
  {
    base::MutexLock lock(&mu_);
    deciding_ = begun;
  }
  if (!begun.ok()) return;
  term_ = Term{token, deps_.clock->Monotonic(), deps_.clock->Now(), 0, std::nullopt};
  ids_.BeginAnew();
  queues_thread_.Wake();
  actuation_thread_.Wake();
}

absl::Time TargetLoop::TimeOfDecision() {
  const absl::Time now = deps_.clock->Now();
  const bool steps_back = now < last_time_ && last_time_ - now <= kMaxStepBack;
  if (!steps_back) last_time_ = now;
  return last_time_;
}

void TargetLoop::PassOnAnnouncements(absl::Time now) {
  std::vector<scaling::policy::Announcement> announced;
  {
    base::MutexLock lock(&mu_);
    announced.swap(announced_);
  }
  for (scaling::policy::Announcement& announcement : announced) {
    announcement.at = std::min(announcement.at, now);
    policy_.Announce(announcement);
  }
}

// An item that is put between the initiator's heartbeat and the reading counts twice until the next
// heartbeat.
std::vector<scaling::policy::QueueReading> TargetLoop::Readings() const {
  std::vector<scaling::policy::QueueReading> readings = watch_.readings();
  if (!deps_.initiators) return readings;
  const std::vector<bus::RosterEntry> initiators = deps_.initiators();
  for (scaling::policy::QueueReading& reading : readings) {
    reading.ready += bus::HeldBackItems(initiators, [&](absl::string_view queue) {
      const absl::string_view name = WithinAccount(queue, options_.account);
      return !name.empty() && NameOf(name, target_.queues) == reading.queue;
    });
  }
  return readings;
}

FleetSigns TargetLoop::SignsAt(absl::Time now) const {
  FleetSigns signs;
  signs.now = now;
  for (const bus::RosterEntry& entry : deps_.roster()) {
    signs.workers.push_back(LoadOf(entry, options_.account, target_.queues));
  }
  // Where the bus fails, the last words of all come within one interval, not in the order in which
  // their time is up.
  absl::Time last_of_silent = absl::InfinitePast(), last_of_others = absl::InfinitePast();
  for (const WorkerLoad& worker : signs.workers) {
    if (worker.silent) last_of_silent = std::max(last_of_silent, worker.heard);
  }
  const auto others = deps_.initiators ? deps_.initiators() : std::vector<bus::RosterEntry>();
  for (const bus::RosterEntry& entry : others) {
    if (!entry.leaving) last_of_others = std::max(last_of_others, entry.heard);
  }
  const absl::Duration silence = bus::kMissingHeartbeats * bus::kHeartbeatInterval;
  signs.hears_others =
      last_of_others > absl::InfinitePast() && last_of_others - last_of_silent >= silence;
  TargetView view = actuation_.view();
  signs.state = std::move(view.state);
  signs.is_seen = view.was_seen && view.is_fresh;
  signs.has_platform = !actuation_.is_dry() && view.was_seen;
  signs.ordered = std::max(view.ordered, absl::UnixEpoch());
  if (!term_.has_value()) return signs;
  signs.ordered = std::max(signs.ordered, term_->began);
  signs.trusts_platform = deps_.clock->Monotonic() - term_->since < kSettleTime;
  signs.standby = term_->standby;
  return signs;
}

// After the term begins, the first queue readings and the first actuator view arrive within
// moments. The loop waits kLookPeriod for them, then decides without them. It never decides without
// the overrides (here) or an id (Conclude).
bool TargetLoop::IsTooEarly(const FleetSigns& signs,
                            const std::vector<scaling::policy::QueueReading>& queues) const {
  if (!deps_.overrides->is_known()) return true;
  const bool sees_all = signs.is_seen && !queues.empty();
  return !sees_all && deps_.clock->Monotonic() - term_->since < kLookPeriod;
}

Weighed TargetLoop::Weigh(const FleetSigns& signs,
                          std::vector<scaling::policy::QueueReading> queues, int* live) {
  Weighed weighed;
  scaling::policy::Observation& seen = weighed.observation;
  seen.now = signs.now;
  seen.queues = std::move(queues);
  FleetSigns looked = signs;
  // The number of parked replicas depends on the standby that the policy wants, and the policy's
  // answer depends on the number of parked replicas. Two rounds settle it, because a policy answers
  // the same at the same instant.
  for (int round = 0; round < 2; ++round) {
    FleetLook look = fleet_.Look(looked);
    *live = look.live;
    weighed.waiting = look.waiting;
    let_go_first_ = std::move(look.let_go_first);
    has_lost_reports_ = look.has_lost_reports;
    seen.fleet = std::move(look.fleet);
    seen.estimates = look.estimates;
    weighed.by_policy = policy_.Decide(seen);
    if (weighed.by_policy.standby == looked.standby) break;
    looked.standby = weighed.by_policy.standby;
  }
  weighed.trace = policy_.trace();
  seen.bounds = weighed.trace.bounds;
  weighed.decided = weighed.by_policy;
  return weighed;
}

// How many replicas must stay because the agent cannot see all that exist; 0: it sees all.
int TargetLoop::UnseenReplicas(const FleetSigns& signs, int live, const Weighed& weighed) const {
  const bool has_settled = deps_.clock->Monotonic() - term_->since >= kSettleTime;
  // Once the metrics count as lost, the rules' on_metric_loss decides.
  const bool has_readings = !weighed.observation.queues.empty() || weighed.trace.has_lost_metrics;
  if (signs.is_seen && has_settled && has_readings && !has_lost_reports_) return 0;
  // Without a platform to ask, the last decision stands for the number of replicas.
  return std::max(live, signs.has_platform ? signs.state.wanted : decided_);
}

void TargetLoop::NoteSeen(const scaling::policy::Observation& observation) {
  base::MutexLock lock(&mu_);
  snapshot_ = Snapshot{name(), observation, policy_.options(), policy_.forecast()};
  deciding_ = policy_.recording();
  heartbeat_status_ = has_lost_reports_
                          ? absl::UnavailableError("the heartbeats of most replicas do not come")
                          : absl::OkStatus();
}

std::string TargetLoop::HealthTroubles() const {
  std::vector<std::string> troubles;
  const auto add = [&troubles](const absl::Status& status) {
    if (!status.ok()) troubles.push_back(std::string(status.message()));
  };
  add(watch_.trouble());
  add(watch_.unknown());
  add(actuation_.view().trouble);
  base::MutexLock lock(&mu_);
  add(deciding_);
  add(heartbeat_status_);
  return absl::StrJoin(troubles, "; ");
}

std::optional<int> TargetLoop::desired() const {
  base::MutexLock lock(&mu_);
  return desired_;
}

bool TargetLoop::is_actuated() const {
  base::MutexLock lock(&mu_);
  return is_actuated_;
}

std::optional<Snapshot> TargetLoop::snapshot() const {
  base::MutexLock lock(&mu_);
  return snapshot_;
}

void TargetLoop::NoteJudged(const v1::ScalingDecision& decision) {
  base::MutexLock lock(&mu_);
  judged_ = decision;
}

// A decision stands while it says the same; how late the work is goes on.
std::optional<v1::ScalingDecision> TargetLoop::LastJudged() const {
  std::optional<v1::ScalingDecision> last = deps_.decision_log->Last(name());
  base::MutexLock lock(&mu_);
  if (!last.has_value() || last->id() != judged_.id()) return last;
  v1::ScalingDecision judged = judged_;
  *judged.mutable_decided() = last->decided();
  judged.set_replicas_before(last->replicas_before());
  *judged.mutable_action() = last->action();
  return judged;
}

v1::ScalingTarget TargetLoop::Status() const {
  return StatusOf({name(), target_.queues, HealthTroubles(), LastJudged(),
                   deps_.overrides->Of(name()), snapshot()});
}

}  // namespace muster::scaling_agent
