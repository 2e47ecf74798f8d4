#include "services/scaling-agent/decision_ids.h"

#include "absl/strings/str_cat.h"
#include "services/scaling-agent/limits.h"

namespace muster::scaling_agent {

DecisionIds::DecisionIds(absl::string_view target, sync::OptimisticSyncStore* store)
    : target_(target), store_(store) {}

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
