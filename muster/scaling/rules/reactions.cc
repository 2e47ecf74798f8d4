// SPDX-License-Identifier: Apache-2.0
#include "muster/scaling/rules/reactions.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/scaling/rules/limits.h"

namespace muster::scaling::rules {
namespace {

std::string KeyOf(const Reaction& reaction) {
  const auto* const scale = std::get_if<Scale>(&reaction.action);
  return absl::StrCat(reaction.rank, " ", scale == nullptr ? 0 : scale->amount, " ",
                      scale != nullptr && scale->is_percent, " ", reaction.condition.ToString());
}

// A step moves by at least one replica, also from 0.
int Stepped(const Scale& scale, int from) {
  double to = from + scale.amount;
  if (scale.is_percent) {
    const double exact = from * (1 + scale.amount / 100.0);
    to = scale.amount > 0 ? std::max(std::ceil(exact - 1e-9), from + 1.0)
                          : std::min(std::floor(exact + 1e-9), from - 1.0);
  }
  return static_cast<int>(std::clamp(to, 0.0, static_cast<double>(kMaxReplicas)));
}

bool IsUp(const Reaction& reaction) {
  const auto* const scale = std::get_if<Scale>(&reaction.action);
  return scale != nullptr && scale->amount > 0;
}
bool IsDown(const Reaction& reaction) {
  const auto* const scale = std::get_if<Scale>(&reaction.action);
  return scale != nullptr && scale->amount < 0;
}
bool IsSet(const Reaction& reaction) {
  return std::holds_alternative<SetReplicas>(reaction.action);
}
bool Holds(const Reaction& reaction, Hold hold) {
  const auto* const held = std::get_if<Hold>(&reaction.action);
  return held != nullptr && *held == hold;
}

}  // namespace

void Reactions::Use(std::shared_ptr<const Rules> rules, absl::string_view target) {
  rules_ = std::move(rules);
  target_ = rules_->FindTarget(target);
  reactions_.clear();
  for (const Reaction& reaction : rules_->reactions) {
    if (reaction.target == target) reactions_.push_back(&reaction);
  }
  std::stable_sort(reactions_.begin(), reactions_.end(),
                   [](const Reaction* a, const Reaction* b) { return a->rank < b->rank; });
  std::map<std::string, Step> kept;
  for (const Reaction* const reaction : reactions_) {
    const auto step = steps_.find(KeyOf(*reaction));
    if (step != steps_.end()) kept.insert(*step);
  }
  steps_ = std::move(kept);
}

void Reactions::StepBack(absl::Time now) {
  for (auto& [key, step] : steps_) step.at = std::min(step.at, now);
}

bool Reactions::IsTrue(const Reaction& reaction, const Operands& operands, absl::Time now) const {
  const auto value_of = [&](absl::string_view name) -> std::optional<double> {
    if (name != kSlaOperand) return operands.Value(name, now);
    return target_->sla_max ? std::optional(absl::ToDoubleSeconds(*target_->sla_max))
                            : std::nullopt;
  };
  return reaction.condition.Evaluate(value_of) == true;
}

int Reactions::GoalOf(const Reaction& reaction, const scaling::policy::Observation& observation) {
  if (const auto* const set = std::get_if<SetReplicas>(&reaction.action)) return set->replicas;
  const auto* const scale = std::get_if<Scale>(&reaction.action);
  if (scale == nullptr) return 0;
  const int there = observation.fleet.committed();
  const auto [step, is_new] = steps_.try_emplace(KeyOf(reaction));
  const absl::Duration pause = std::max(kMinReactionPause, observation.estimates.cold_start);
  const bool is_due =
      observation.fleet.starting.empty() && observation.now - step->second.at >= pause;
  if (is_new || is_due) step->second = {observation.now, Stepped(*scale, there)};
  return step->second.goal;
}

std::vector<Reactions::Active> Reactions::ActiveOf(size_t begin, size_t end,
                                                   const scaling::policy::Observation& observation,
                                                   const Operands& operands) {
  std::vector<Active> active;
  for (size_t i = begin; i < end; ++i) {
    const Reaction& reaction = *reactions_[i];
    if (IsTrue(reaction, operands, observation.now)) {
      active.push_back({&reaction, GoalOf(reaction, observation)});
    } else {
      steps_.erase(KeyOf(reaction));
    }
  }
  return active;
}

Reactions::Outcome Reactions::Apply(const scaling::policy::Observation& observation,
                                    const scaling::policy::Decision& decision,
                                    const Operands& operands) {
  Outcome outcome{.replicas = decision.replicas, .by = ""};
  for (size_t begin = 0, end = 0; begin < reactions_.size(); begin = end) {
    while (end < reactions_.size() && reactions_[end]->rank == reactions_[begin]->rank) ++end;
    ApplyRank(ActiveOf(begin, end, observation, operands), observation.fleet.committed(),
              decision.wanted, &outcome);
  }
  return outcome;
}

void Reactions::ApplyRank(std::vector<Active> active, int there, int wanted, Outcome* outcome) {
  const auto change = [&](const Active& rule, int replicas) {
    if (replicas == outcome->replicas) return;
    outcome->replicas = replicas;
    outcome->by = rule.reaction->condition.text();
  };
  const auto each = [&](auto is_meant, auto act) {
    for (const Active& rule : active) {
      if (is_meant(*rule.reaction)) act(rule);
    }
  };
  // The largest goal comes last, so that it has the last word.
  std::stable_sort(active.begin(), active.end(),
                   [](const Active& a, const Active& b) { return a.goal < b.goal; });
  bool decides = false, grows = false;
  const auto is_goal = [](const Reaction& rule) { return IsUp(rule) || IsSet(rule); };
  each(is_goal, [&](const Active& rule) {
    decides = true;
    grows = grows || rule.goal > there;
  });
  each(IsSet, [&](const Active& rule) { change(rule, rule.goal); });
  each(IsUp, [&](const Active& rule) { change(rule, std::max(outcome->replicas, rule.goal)); });
  // The smallest step down applies: a replica stays if one of the reactions would keep it.
  const auto down = std::find_if(active.rbegin(), active.rend(),
                                 [](const Active& rule) { return IsDown(*rule.reaction); });
  if (!decides && down != active.rend()) {
    change(*down, std::min(outcome->replicas, std::max(down->goal, wanted)));
  }
  const auto holds_up = [&](const Reaction& rule) { return !grows && Holds(rule, Hold::kUp); };
  const auto holds_down = [](const Reaction& rule) { return Holds(rule, Hold::kDown); };
  each(holds_up, [&](const Active& rule) { change(rule, std::min(outcome->replicas, there)); });
  each(holds_down, [&](const Active& rule) { change(rule, std::max(outcome->replicas, there)); });
}

}  // namespace muster::scaling::rules
