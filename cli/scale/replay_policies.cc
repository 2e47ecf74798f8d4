#include "cli/scale/replay_policies.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/scaling/rules/ruled_policy.h"
#include "muster/scaling/rules/rules_file.h"

namespace muster::cli {
namespace {

using scaling::replay::PolicyEntry;
using scaling::rules::Rules;

absl::StatusOr<const scaling::rules::Target*> FindTarget(const ReplayOptions& options,
                                                         const Rules& rules) {
  if (options.target.empty()) {
    if (rules.targets.size() == 1) return &rules.targets.front();
    return absl::InvalidArgumentError("the rules have several targets: name one with --target");
  }
  const scaling::rules::Target* const target = rules.FindTarget(options.target);
  if (target != nullptr) return target;
  return absl::NotFoundError(absl::StrCat("the rules have no target '", options.target, "'"));
}

void TakeOver(const scaling::rules::Target& target, scaling::replay::SimOptions* sim,
              scaling::policy::DeadlineOptions* deadline) {
  if (sim->sla == absl::ZeroDuration()) sim->sla = target.sla_max.value_or(absl::ZeroDuration());
  sim->queue = target.queues.front();
  sim->min = std::max(sim->min, target.range.min);
  sim->max = std::min(sim->max, target.range.max);
  deadline->aim = target.sla_aim;
  deadline->patience = target.patience;
}

void ClampTo(const std::shared_ptr<const Rules>& rules, const std::string& target,
             PolicyEntry* entry) {
  entry->settings += ", rules";
  entry->make = [rules, target, make = std::move(entry->make)](uint64_t seed) {
    // The target was found in these very rules.
    return *scaling::rules::RuledPolicy::Make(rules, target, make(seed));
  };
}

}  // namespace

absl::StatusOr<std::vector<PolicyEntry>> ComposePolicies(ReplayOptions* options) {
  scaling::policy::DeadlineOptions deadline;
  deadline.patience = options->patience;
  std::shared_ptr<const Rules> rules;  // every run of the policy shares them
  std::string target_id;
  if (!options->rules_file.empty()) {
    MUSTER_ASSIGN_OR_RETURN(Rules loaded, scaling::rules::LoadRulesFile(options->rules_file));
    rules = std::make_shared<const Rules>(std::move(loaded));
    MUSTER_ASSIGN_OR_RETURN(const scaling::rules::Target* const target,
                            FindTarget(*options, *rules));
    TakeOver(*target, &options->sim, &deadline);
    target_id = target->id;
  }
  MUSTER_RETURN_IF_ERROR(Check(options->sim));
  deadline.sla = options->sim.sla;
  std::vector<PolicyEntry> policies;
  for (const std::string& name : options->policies) {
    MUSTER_ASSIGN_OR_RETURN(std::vector<PolicyEntry> found,
                            scaling::replay::FindPolicies(name, options->sim, deadline));
    for (PolicyEntry& entry : found) {
      if (rules != nullptr && entry.name == "deadline") ClampTo(rules, target_id, &entry);
      policies.push_back(std::move(entry));
    }
  }
  return policies;
}

}  // namespace muster::cli
