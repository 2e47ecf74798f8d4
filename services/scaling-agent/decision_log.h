// DecisionLog: the decisions that are kept, and those who follow them.
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

// Whether a person learns anything from `b` after `a`: another number, another reason, another
// verdict. What merely goes on, such as the time by which all is done, is none.
bool SaysTheSame(const v1::ScalingDecision& a, const v1::ScalingDecision& b);

// Thread-safe. Keeps the last kKeptDecisions of each target.
class DecisionLog {
 public:
  // Hears of decisions from its making on; ends with the book's followers, or when it is dropped.
  class Follower {
   public:
    // The next one; nullopt: none came until the clock's `deadline`, or it has ended.
    std::optional<v1::ScalingDecision> Next(absl::Duration deadline);
    bool ended() const;

   private:
    friend class DecisionLog;
    Follower(std::string target, base::Clock* clock) : target_(std::move(target)), clock_(clock) {}
    void Tell(const v1::ScalingDecision& decision);
    void End();

    const std::string target_;  // empty: all
    base::Clock* const clock_;  // not owned
    mutable base::Mutex mu_;
    base::CondVar changed_;
    std::deque<v1::ScalingDecision> news_ ABSL_GUARDED_BY(mu_);  // the oldest are dropped
    bool ended_ ABSL_GUARDED_BY(mu_) = false;
  };

  // `clock` is not owned, and outlives the followers.
  explicit DecisionLog(base::Clock* clock) : clock_(clock) {}

  void Add(const v1::GetDecisionResponse& made);
  // Followers hear of it where its state or its numbers are others than before. Nothing happens
  // where the decision is not kept any more.
  void SetAction(const std::string& decision, const v1::ScalingAction& action);
  // The rules do not have the target any more.
  void Forget(const std::string& target);

  std::optional<v1::ScalingDecision> Last(const std::string& target) const;
  // Of an id; the last one of `target`, or of all, where it is empty. NotFound.
  absl::StatusOr<v1::GetDecisionResponse> Find(const std::string& decision,
                                               const std::string& target) const;
  // Of a target, or of all: newest first.
  std::vector<v1::ScalingDecision> List(const std::string& target, size_t most) const;

  // Of a target, or of all. Shared with the book. ResourceExhausted: there are too many.
  absl::StatusOr<std::shared_ptr<Follower>> Follow(const std::string& target);
  // This agent leads no more.
  void EndFollowers();

 private:
  struct Kept {
    uint64_t order = 0;  // over all targets
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

// DecisionIds: the numbers in the ids of one target's decisions, "billing-17". They count up, also
// when another agent goes on deciding.

// Thread-safe. Decisions never wait for the store: one thread fills, another takes.
class DecisionIds {
 public:
  // `store` is not owned.
  DecisionIds(absl::string_view target, sync::OptimisticSyncStore* store);

  // Before the first, and when others have decided meanwhile: what is left is older than their
  // numbers.
  void BeginAnew();
  // Sees to it that some are at hand; blocks as long as the store does. One at a time.
  absl::Status Fill();
  // nullopt: there is none, until the store answers.
  std::optional<std::string> Take();

 private:
  const std::string target_;
  sync::OptimisticSyncStore* const store_;  // not owned

  base::Mutex mu_;
  // nullptr: nothing has begun yet. Shared with who fills while all begins anew.
  std::shared_ptr<sync::UniqueIdGenerator> generator_ ABSL_GUARDED_BY(mu_);
  std::deque<int64_t> at_hand_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::scaling_agent
