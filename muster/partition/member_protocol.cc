// SPDX-License-Identifier: Apache-2.0
#include "muster/partition/member_protocol.h"

#include <algorithm>
#include <utility>

namespace muster::partition {
namespace {

// How many pages a look between cycles reads; the next one goes on behind them.
constexpr int kLookPages = 4;

// A member that stops takes so many failures for a store that does not answer.
constexpr int kMaxStopFailures = 3;

// Leave the list of members, remove the own presence.
constexpr int kLeaveSteps = 2;

// In a cycle that a slow store prolongs, what was renewed so long ago comes first: a third of the
// lease, so that one failed renewal leaves time for another.
constexpr int kRenewalsPerLease = 3;

// The next number of a SplitMix64 sequence.
uint64_t Draw(uint64_t* state) {
  uint64_t z = (*state += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

}  // namespace

MemberProtocol::MemberProtocol(const MemberOptions& options, uint64_t seed)
    : options_(options),
      seen_(options),
      works_(static_cast<size_t>(options.partitions)),
      draws_(seed) {}

void MemberProtocol::BeginCycle(absl::Duration now, absl::Time wall) {
  if (stopping_ || phase_ != Phase::kIdle) return;
  wall_millis_ = absl::ToUnixMillis(wall);
  phase_ = Phase::kObserve;
  actions_ = taken_ = 0;
  looks_again_ = false;
  PlanCycle(now);
}

void MemberProtocol::PlanCycle(absl::Duration now) {
  plan_.push_back({.purpose = Purpose::kBeat,
                   .name = {.kind = RecordName::Kind::kPresence, .member = options_.member}});
  const int pages = PagesOf(options_.partitions, options_.page_rows);
  for (int page = 0; page < pages; ++page) {
    if (HasAny(page, Work::State::kHeld)) plan_.push_back(Renewal(page, now));
    if (HasAny(page, Work::State::kReleasing)) {
      plan_.push_back({.purpose = Purpose::kRelease, .name = {.page = page}});
    }
  }
  plan_.push_back({.purpose = Purpose::kJoin, .name = {.kind = RecordName::Kind::kMembers}});
  for (int page = 0; page < pages; ++page) {
    if (HasAny(page, Work::State::kHeld)) continue;
    plan_.push_back({.purpose = Purpose::kLook, .name = {.page = page}});
  }
}

MemberProtocol::Step MemberProtocol::Renewal(int page, absl::Duration now) {
  for (int p = FirstOf(page); p < EndOf(page); ++p) {
    if (At(p).state == Work::State::kHeld) At(p).tried = now;
  }
  return {.purpose = Purpose::kRenew, .name = {.page = page}};
}

void MemberProtocol::BeginLook(absl::Duration now) {
  if (stopping_ || phase_ != Phase::kIdle || !plan_.empty()) return;
  const int pages = PagesOf(options_.partitions, options_.page_rows);
  int looked = looked_page_;
  for (int i = 1; i <= pages && plan_.size() < kLookPages; ++i) {
    const int page = (looked_page_ + i) % pages;
    bool wants = false;
    for (int p = FirstOf(page); p < EndOf(page) && !wants; ++p) {
      wants = seen_.record(p).wanted_by == options_.member;
    }
    if (!wants) continue;
    plan_.push_back({.purpose = Purpose::kLook, .name = {.page = page}});
    looked = page;
  }
  looked_page_ = looked;
  if (plan_.empty()) return;
  phase_ = Phase::kClaimDue;
  actions_ = 0;
}

void MemberProtocol::BeginStop(absl::Duration now, bool stays_listed) {
  if (stopping_) return;
  stopping_ = true;
  if (stays_listed) leave_steps_ = kLeaveSteps;
  phase_ = Phase::kIdle;
  plan_.clear();
  for (int p = 0; p < options_.partitions; ++p) Drain(p, now);
}

int MemberProtocol::EndOf(int page) const {
  return std::min(options_.partitions, FirstOf(page + 1));
}

bool MemberProtocol::HasAny(int page, Work::State state) const {
  for (int p = FirstOf(page); p < EndOf(page); ++p) {
    if (At(p).state == state) return true;
  }
  return false;
}

MemberProtocol::Step MemberProtocol::StepFor(Purpose purpose, std::vector<int> partitions) const {
  const int page = PageOf(partitions.front());
  return {.purpose = purpose, .name = {.page = page}, .partitions = std::move(partitions)};
}

std::optional<RecordRequest> MemberProtocol::Next(absl::Duration now) {
  Expire(now);
  if (!step_.has_value()) step_ = NextStep(now);
  if (!step_.has_value()) return std::nullopt;
  RecordRequest request{.name = step_->name};
  if (step_->stage == Stage::kWrite) {
    step_->write_began = now;
    ++step_->writes;
    request.verb = step_->purpose == Purpose::kForget ? RecordRequest::Verb::kDelete
                                                      : RecordRequest::Verb::kWrite;
    request.value = step_->intended;
    request.version = step_->version;
  }
  return request;
}

std::optional<MemberProtocol::Step> MemberProtocol::NextStep(absl::Duration now) {
  if (stopping_) return StopStep();
  if (std::optional<Step> renewal = DueRenewal(now); renewal.has_value()) return renewal;
  if (std::optional<Step> release = DueRelease(); release.has_value()) return release;
  while (plan_.empty() && phase_ != Phase::kIdle) AdvancePhase(now);
  if (plan_.empty()) return std::nullopt;
  Step step = std::move(plan_.front());
  plan_.pop_front();
  return step;
}

std::optional<MemberProtocol::Step> MemberProtocol::DueRenewal(absl::Duration now) {
  if (phase_ == Phase::kIdle) return std::nullopt;
  for (int p = 0; p < options_.partitions; ++p) {
    const Work& work = At(p);
    if (work.state != Work::State::kHeld) continue;
    if (now - work.tried < options_.lease / kRenewalsPerLease) continue;
    return Renewal(PageOf(p), now);
  }
  return std::nullopt;
}

// All of a page that have stopped by now are released in one write.
std::optional<MemberProtocol::Step> MemberProtocol::DueRelease() {
  for (int p = 0; p < options_.partitions; ++p) {
    if (At(p).state != Work::State::kReleasing || !At(p).release_due) continue;
    const int page = PageOf(p);
    for (int other = p; other < EndOf(page); ++other) At(other).release_due = false;
    return Step{.purpose = Purpose::kRelease, .name = {.page = page}};
  }
  return std::nullopt;
}

// Each release is tried once; what fails is left to the lease.
std::optional<MemberProtocol::Step> MemberProtocol::StopStep() {
  const bool answers = stop_failures_ < kMaxStopFailures;
  if (std::optional<Step> release = DueRelease(); answers && release.has_value()) return release;
  const bool works = std::any_of(works_.begin(), works_.end(), [](const Work& work) {
    return work.state == Work::State::kHeld || work.state == Work::State::kDraining ||
           work.state == Work::State::kStopping;
  });
  if (works || left_) return std::nullopt;
  if (!answers) leave_steps_ = kLeaveSteps;
  switch (leave_steps_++) {
    case 0:
      return Step{.purpose = Purpose::kLeave, .name = {.kind = RecordName::Kind::kMembers}};
    case 1:
      return Step{.purpose = Purpose::kForget,
                  .name = {.kind = RecordName::Kind::kPresence, .member = options_.member}};
    default:
      left_ = true;
      return std::nullopt;
  }
}

void MemberProtocol::AdvancePhase(absl::Duration now) {
  switch (phase_) {
    case Phase::kIdle:
      return;
    case Phase::kObserve:
      for (std::string& member : seen_.MembersToLookAt()) {
        plan_.push_back({.name = {.kind = RecordName::Kind::kPresence, .member = member}});
      }
      phase_ = Phase::kPresence;
      return;
    case Phase::kPresence:
      phase_ = Phase::kAct;
      return;
    case Phase::kClaimDue:
      if (std::optional<Step> step = ClaimDueStep(now); step.has_value()) {
        plan_.push_back(*std::move(step));
      } else {
        phase_ = Phase::kIdle;
      }
      return;
    case Phase::kAct:
      break;
  }
  if (std::exchange(looks_again_, false)) {
    plan_.push_back({.purpose = Purpose::kJoin, .name = {.kind = RecordName::Kind::kMembers}});
    return;
  }
  std::optional<Step> step = DecideStep(now);
  if (step.has_value()) {
    plan_.push_back(*std::move(step));
    return;
  }
  cycles_ = std::min(cycles_ + 1, 2);
  phase_ = Phase::kIdle;
}

std::optional<MemberProtocol::Step> MemberProtocol::DecideStep(absl::Duration now) {
  // Each partition may be refused or granted, and claimed or asked for, once.
  if (++actions_ > 2 * options_.partitions) return std::nullopt;
  const GroupView view = ViewForDecision(now);
  const uint64_t draw = Draw(&draws_);
  // A newcomer first lets the others see it, and takes nothing before it has seen them: those that
  // start together then share at once, and nothing has to move.
  const bool gentle = options_.strategy == Strategy::kBalanced;
  const bool looked = cycles_ > 0 || !options_.looks_first;
  std::vector<Action> actions = DecideDutyBatch(view, draw, options_.page_rows);
  if (actions.empty() && looked && listed_ && !(gentle && taken_ > 0)) {
    actions = DecideBatch(view, draw, options_.page_rows, gentle ? 1 : options_.page_rows);
    ++taken_;
  }
  if (actions.empty()) return std::nullopt;
  std::vector<int> partitions;
  partitions.reserve(actions.size());
  for (const Action& action : actions) partitions.push_back(action.partition);
  const Action::Kind kind = actions.front().kind;
  looks_again_ = kind == Action::Kind::kClaim || kind == Action::Kind::kAsk;
  return StepFor(PurposeOf(kind), std::move(partitions));
}

MemberProtocol::Purpose MemberProtocol::PurposeOf(Action::Kind kind) {
  switch (kind) {
    case Action::Kind::kNone:
      break;
    case Action::Kind::kGrant:
      return Purpose::kGrant;
    case Action::Kind::kRefuse:
      return Purpose::kRefuse;
    case Action::Kind::kClaim:
      return Purpose::kClaim;
    case Action::Kind::kAsk:
      return Purpose::kAsk;
  }
  return Purpose::kLook;
}

std::optional<MemberProtocol::Step> MemberProtocol::ClaimDueStep(absl::Duration now) {
  if (++actions_ > options_.partitions) return std::nullopt;
  std::vector<int> due;
  for (int p = 0; p < options_.partitions; ++p) {
    // The owner has freed it for this member, or has had the grace.
    const bool is_due = seen_.record(p).wanted_by == options_.member &&
                        At(p).state == Work::State::kNone && seen_.IsClaimable(p, true, now);
    if (is_due && (due.empty() || PageOf(p) == PageOf(due.front()))) due.push_back(p);
  }
  if (due.empty()) return std::nullopt;
  return StepFor(Purpose::kClaim, std::move(due));
}

GroupView MemberProtocol::ViewForDecision(absl::Duration now) const {
  GroupView view = seen_.View(now);
  for (int p = 0; p < options_.partitions; ++p) {
    PartitionView& partition = view.partitions[static_cast<size_t>(p)];
    partition.claimable = seen_.IsClaimable(p, At(p).state == Work::State::kNone, now);
    partition.inherited = seen_.IsInherited(p);
    partition.running = At(p).state == Work::State::kHeld;
  }
  return view;
}

}  // namespace muster::partition
