// SPDX-License-Identifier: Apache-2.0

// A rules file.
#include "absl/strings/str_cat.h"
#include "muster/scaling/rules/rules_file.h"
#include "tests/fuzz/mistakes.h"
#include "tests/fuzz/property.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::fuzz;
  namespace rules = muster::scaling::rules;
  const absl::string_view text = Text(data, size);
  const auto read = rules::ParseRules(text, "rules.yaml");
  if (!read.ok()) {
    CheckMistakes(read.status(), "rules.yaml", text);
    return 0;
  }
  Must(!read->targets.empty(), "rules have a target");
  for (const rules::Constraint& constraint : read->constraints) {
    Must(read->FindTarget(constraint.target) != nullptr, "a constraint is of a target");
    if (!constraint.when) continue;
    const absl::Time now = absl::FromUnixSeconds(1'800'000'000);
    const absl::Time change = constraint.when->NextChange(now);
    Must(change > now, "what changes next lies ahead");
    Must(change == absl::InfiniteFuture() ||
             constraint.when->IsOpen(change) != constraint.when->IsOpen(now),
         "a change changes something");
  }
  for (const rules::Reaction& reaction : read->reactions) {
    const rules::Target* const target = read->FindTarget(reaction.target);
    Must(target != nullptr, "a reaction is of a target");
    const auto again = rules::Condition::Parse(
        reaction.condition.ToString(), [&](absl::string_view name) -> std::optional<rules::Kind> {
          const rules::Operand* const operand = read->FindOperand(name);
          if (name == rules::kSlaOperand) return rules::Kind::kTime;
          if (operand == nullptr) return std::nullopt;
          return rules::KindOfMetric(operand->metric);
        });
    // The printed condition may be longer than its source, and thus too long.
    Must(!again.ok() || rules::SameTree(again->root(), reaction.condition.root()),
         "a condition is read back as it was");
  }
  return 0;
}
