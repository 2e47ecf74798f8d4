// SPDX-License-Identifier: Apache-2.0

// The sections of a rules file: each function reads one of them into its part of Rules. They are
// read in this order, because each refers to definitions of the sections before it.
#pragma once

#include "muster/scaling/rules/rules.h"
#include "muster/yaml/yaml_value.h"

namespace muster::scaling::rules {

// The places of maps in RulesFileKeys.
inline constexpr char kTop[] = "";
inline constexpr char kTarget[] = "targets{}";
inline constexpr char kTargetSla[] = "targets{}.sla";
inline constexpr char kConstraint[] = "constraints[]";
inline constexpr char kWhen[] = "constraints[].when";
inline constexpr char kOperand[] = "operands{}";
inline constexpr char kReaction[] = "reactive[]";
inline constexpr char kDo[] = "reactive[].do";
inline constexpr char kStabilizer[] = "stabilizer";
inline constexpr char kMetricLoss[] = "on_metric_loss";

void ReadTargets(const yaml::YamlValue& section, Rules* rules);
void ReadConstraints(const yaml::YamlValue& section, Rules* rules);
void ReadOperands(const yaml::YamlValue& section, Rules* rules);
void ReadReactions(const yaml::YamlValue& section, Rules* rules);
void ReadStabilizer(const yaml::YamlValue& section, Rules* rules);
void ReadMetricLoss(const yaml::YamlValue& section, Rules* rules);

// Reads the `when` of a constraint.
void ReadWhen(const yaml::YamlValue& section, Constraint* constraint);

// Reads the id of an existing target; a problem lists the existing targets.
bool ReadTargetId(const yaml::YamlValue& value, const Rules& rules, std::string* id);

}  // namespace muster::scaling::rules
