// SPDX-License-Identifier: Apache-2.0

// DecisionLog keeps recent decisions and streams new ones to followers. DecisionIds numbers them.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/sync/optimistic_sync_store.h"
#include "muster/sync/unique_id_generator.h"
#include "muster/v1/scaling_service.pb.h"

namespace muster::scaling_agent {

// False where `b` tells a person something new after `a`: another number, another reason or another
// verdict. Figures that change with every decision, such as the time by which all work is done, are
// not compared.
bool SaysTheSame(const v1::ScalingDecision& a, const v1::ScalingDecision& b);

// Thread-safe. Keeps the last kKeptDecisions of each target.
class DecisionLog {
 public:
  // Receives the decisions that are made after the follower was created. EndFollowers ends it;
  // dropping it unsubscribes it.
  class Follower {
   public:
    // The next decision. nullopt: none came until `deadline` (the clock's Monotonic()), or the
    // follower has ended.
    std::optional<v1::ScalingDecision> Next(absl::Duration deadline) ABSL_LOCKS_EXCLUDED(mu_);
    bool ended() const ABSL_LOCKS_EXCLUDED(mu_);

   private:
    friend class DecisionLog;
    Follower(std::string target, base::Clock* clock) : target_(std::move(target)), clock_(clock) {}
    void Tell(const v1::ScalingDecision& decision) ABSL_LOCKS_EXCLUDED(mu_);
    void End() ABSL_LOCKS_EXCLUDED(mu_);

    const std::string target_;  // empty: all
    base::Clock* const clock_;  // not owned
    mutable base::Mutex mu_;
    base::CondVar changed_;
    std::deque<v1::ScalingDecision> news_
        ABSL_GUARDED_BY(mu_);  // when full, the oldest are dropped
    bool ended_ ABSL_GUARDED_BY(mu_) = false;
  };

  // `clock` is not owned, and outlives the followers.
  explicit DecisionLog(base::Clock* clock) : clock_(clock) {}

  void Add(const v1::GetDecisionResponse& made) ABSL_LOCKS_EXCLUDED(mu_);
  // Followers receive the decision again if the action's state or numbers changed. Does nothing if
  // the log no longer keeps the decision.
  void SetAction(const std::string& decision, const v1::ScalingAction& action)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Drops the decisions of a target that the rules no longer have.
  void Forget(const std::string& target) ABSL_LOCKS_EXCLUDED(mu_);

  std::optional<v1::ScalingDecision> Last(const std::string& target) const ABSL_LOCKS_EXCLUDED(mu_);
  // The decision with this id. An empty id: the last decision of `target`, or of all targets if
  // that is empty too. NotFound.
  absl::StatusOr<v1::GetDecisionResponse> Find(const std::string& decision,
                                               const std::string& target) const
      ABSL_LOCKS_EXCLUDED(mu_);
  // The decisions of a target, newest first; an empty `target`: of all targets.
  std::vector<v1::ScalingDecision> List(const std::string& target, size_t most) const
      ABSL_LOCKS_EXCLUDED(mu_);

  // Follows one target, or all targets if `target` is empty. ResourceExhausted: kMaxFollowers
  // follow already.
  absl::StatusOr<std::shared_ptr<Follower>> Follow(const std::string& target)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Ends all followers, because this agent no longer leads.
  void EndFollowers() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Kept {
    uint64_t order = 0;  // counts over all targets
    v1::GetDecisionResponse made;
  };

  const Kept* FindLocked(const std::string& decision, const std::string& target) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void TellLocked(const v1::ScalingDecision& decision) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  base::Clock* const clock_;  // not owned
  mutable base::Mutex mu_;
  uint64_t count_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<std::string, std::deque<Kept>> kept_ ABSL_GUARDED_BY(mu_);  // by target, oldest first
  std::list<std::weak_ptr<Follower>> followers_ ABSL_GUARDED_BY(mu_);
};

// DecisionIds: the numbers in the ids of one target's decisions, "billing-17". They keep counting
// up when another agent takes over.

// Thread-safe. A decision never waits for the store: one thread calls Fill, another calls Take.
class DecisionIds {
 public:
  // `store` is not owned.
  DecisionIds(absl::string_view target, sync::OptimisticSyncStore* store)
      : target_(target), store_(store) {}

  // Drops the reserved numbers. Call it before the first decision and after another agent has led:
  // the remaining numbers are lower than the other agent's.
  void BeginAnew() ABSL_LOCKS_EXCLUDED(mu_);
  // Reserves numbers until kDecisionIdsAtHand are available; blocks as long as the store does. One
  // call at a time.
  absl::Status Fill() ABSL_LOCKS_EXCLUDED(mu_);
  // nullopt: no number is reserved yet.
  std::optional<std::string> Take() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  const std::string target_;
  sync::OptimisticSyncStore* const store_;  // not owned

  base::Mutex mu_;
  // nullptr: BeginAnew was not called yet. Shared, because BeginAnew may replace the generator
  // while Fill still uses it.
  std::shared_ptr<sync::UniqueIdGenerator> generator_ ABSL_GUARDED_BY(mu_);
  std::deque<int64_t> at_hand_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::scaling_agent
