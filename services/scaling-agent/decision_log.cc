// SPDX-License-Identifier: Apache-2.0
#include "services/scaling-agent/decision_log.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/scaling-agent/limits.h"

namespace muster::scaling_agent {

namespace {

bool CameToTheSame(const v1::ScalingAction& a, const v1::ScalingAction& b) {
  return std::tuple(a.state(), a.before(), a.after()) ==
         std::tuple(b.state(), b.before(), b.after());
}

}  // namespace

bool SaysTheSame(const v1::ScalingDecision& a, const v1::ScalingDecision& b) {
  const auto said = [](const v1::ScalingDecision& decision) {
    return std::tuple(decision.target(), decision.replicas(), decision.tasks(), decision.standby(),
                      decision.binding(), decision.feasible(), decision.needs());
  };
  return said(a) == said(b);
}

std::optional<v1::ScalingDecision> DecisionLog::Follower::Next(absl::Duration deadline) {
  base::MutexLock lock(&mu_);
  while (news_.empty() && !ended_ && clock_->Monotonic() < deadline) {
    clock_->WaitUntil(&changed_, &mu_, deadline);
  }
  if (news_.empty()) return std::nullopt;
  v1::ScalingDecision next = std::move(news_.front());
  news_.pop_front();
  return next;
}

bool DecisionLog::Follower::ended() const {
  base::MutexLock lock(&mu_);
  return ended_ && news_.empty();
}

void DecisionLog::Follower::Tell(const v1::ScalingDecision& decision) {
  if (!target_.empty() && target_ != decision.target()) return;
  base::MutexLock lock(&mu_);
  if (news_.size() >= kFollowerBacklog) news_.pop_front();
  news_.push_back(decision);
  changed_.NotifyAll();
}

void DecisionLog::Follower::End() {
  base::MutexLock lock(&mu_);
  ended_ = true;
  changed_.NotifyAll();
}

void DecisionLog::Add(const v1::GetDecisionResponse& made) {
  base::MutexLock lock(&mu_);
  std::deque<Kept>& kept = kept_[made.decision().target()];
  if (kept.size() >= kKeptDecisions) kept.pop_front();
  kept.push_back({++count_, made});
  TellLocked(made.decision());
}

void DecisionLog::SetAction(const std::string& decision, const v1::ScalingAction& action) {
  base::MutexLock lock(&mu_);
  for (auto& [target, kept] : kept_) {
    const auto found = std::find_if(kept.rbegin(), kept.rend(), [&](const Kept& one) {
      return one.made.decision().id() == decision;
    });
    if (found == kept.rend()) continue;
    const bool is_news = !CameToTheSame(found->made.decision().action(), action);
    *found->made.mutable_decision()->mutable_action() = action;
    if (is_news) TellLocked(found->made.decision());
    return;
  }
}

void DecisionLog::Forget(const std::string& target) {
  base::MutexLock lock(&mu_);
  kept_.erase(target);
}

std::optional<v1::ScalingDecision> DecisionLog::Last(const std::string& target) const {
  base::MutexLock lock(&mu_);
  const auto kept = kept_.find(target);
  if (kept == kept_.end() || kept->second.empty()) return std::nullopt;
  return kept->second.back().made.decision();
}

const DecisionLog::Kept* DecisionLog::FindLocked(const std::string& decision,
                                                 const std::string& target) const {
  const Kept* found = nullptr;
  for (const auto& [name, kept] : kept_) {
    if (!target.empty() && target != name) continue;
    for (const Kept& one : kept) {
      if (!decision.empty() && one.made.decision().id() != decision) continue;
      if (found == nullptr || one.order > found->order) found = &one;
    }
  }
  return found;
}

absl::StatusOr<v1::GetDecisionResponse> DecisionLog::Find(const std::string& decision,
                                                          const std::string& target) const {
  base::MutexLock lock(&mu_);
  const Kept* const found = FindLocked(decision, target);
  if (found != nullptr) return found->made;
  if (decision.empty()) return absl::NotFoundError("nothing was decided here yet");
  return absl::NotFoundError(absl::StrCat("no decision '", decision, "' is kept here"));
}

std::vector<v1::ScalingDecision> DecisionLog::List(const std::string& target, size_t most) const {
  base::MutexLock lock(&mu_);
  std::vector<const Kept*> all;
  for (const auto& [name, kept] : kept_) {
    if (!target.empty() && target != name) continue;
    for (const Kept& one : kept) all.push_back(&one);
  }
  std::sort(all.begin(), all.end(),
            [](const Kept* a, const Kept* b) { return a->order > b->order; });
  if (all.size() > most) all.resize(most);
  std::vector<v1::ScalingDecision> decisions;
  for (const Kept* one : all) decisions.push_back(one->made.decision());
  return decisions;
}

absl::StatusOr<std::shared_ptr<DecisionLog::Follower>> DecisionLog::Follow(
    const std::string& target) {
  base::MutexLock lock(&mu_);
  followers_.remove_if([](const std::weak_ptr<Follower>& follower) { return follower.expired(); });
  if (followers_.size() >= kMaxFollowers) {
    return absl::ResourceExhaustedError(
        absl::StrCat(kMaxFollowers, " follow the decisions of this agent already"));
  }
  const std::shared_ptr<Follower> follower(new Follower(target, clock_));
  followers_.push_back(follower);
  return follower;
}

void DecisionLog::EndFollowers() {
  base::MutexLock lock(&mu_);
  for (const std::weak_ptr<Follower>& weak : followers_) {
    if (const auto follower = weak.lock()) follower->End();
  }
  followers_.clear();
}

void DecisionLog::TellLocked(const v1::ScalingDecision& decision) {
  for (const std::weak_ptr<Follower>& weak : followers_) {
    if (const auto follower = weak.lock()) follower->Tell(decision);
  }
}

void DecisionIds::BeginAnew() {
  sync::UniqueIdOptions options;
  options.range_size = kDecisionIdRange;
  base::MutexLock lock(&mu_);
  generator_ = std::make_shared<sync::UniqueIdGenerator>(
      store_, absl::StrCat("scaling/decisions/", target_), options);
  at_hand_.clear();
}

absl::Status DecisionIds::Fill() {
  while (true) {
    std::shared_ptr<sync::UniqueIdGenerator> generator;
    {
      base::MutexLock lock(&mu_);
      if (generator_ == nullptr || at_hand_.size() >= kDecisionIdsAtHand) return absl::OkStatus();
      generator = generator_;
    }
    const absl::StatusOr<int64_t> id = generator->NextId();
    if (!id.ok()) return id.status();
    base::MutexLock lock(&mu_);
    if (generator == generator_) at_hand_.push_back(*id);
  }
}

std::optional<std::string> DecisionIds::Take() {
  base::MutexLock lock(&mu_);
  if (at_hand_.empty()) return std::nullopt;
  const int64_t id = at_hand_.front();
  at_hand_.pop_front();
  return absl::StrCat(target_, "-", id);
}

}  // namespace muster::scaling_agent
