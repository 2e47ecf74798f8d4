// SPDX-License-Identifier: Apache-2.0

// The sections of a job file: each function reads one of them into its part of a JobDefinition.
#pragma once

#include "muster/job/job.h"
#include "muster/yaml/yaml_value.h"

namespace muster::job {

// Where in JobFileKeys the keys of a map stand.
inline constexpr char kTop[] = "";
inline constexpr char kInput[] = "input";
inline constexpr char kItem[] = "item";
inline constexpr char kHandler[] = "handler";
inline constexpr char kGroup[] = "groups[]";
inline constexpr char kOutputs[] = "outputs";
inline constexpr char kQueue[] = "queue";
inline constexpr char kTolerate[] = "tolerate";
inline constexpr char kSla[] = "sla";
inline constexpr char kRetention[] = "retention";
inline constexpr char kUpload[] = "upload";

void ReadInput(const yaml::YamlValue& section, input::InputFormat* input);
void ReadItem(const yaml::YamlValue& section, ItemLimits* item);
// `order_by`: becomes the place of its column in `input`, which was read before.
void ReadOrder(const yaml::YamlValue& value, const input::InputFormat& input,
               std::optional<int>* order_by);
// `on_poison`, of a job in which order_by `is_ordered`.
void ReadOnPoison(const yaml::YamlValue& value, bool is_ordered, OnPoison* on_poison);
void ReadHandler(const yaml::YamlValue& section, HandlerSpec* handler);
void ReadGroups(const yaml::YamlValue& section, std::vector<handler::GroupSchema>* groups);
// `ordered`: the job has order_by, whose items do not follow the order of the input, so that it has
// no outputs.
void ReadOutputs(const yaml::YamlValue& section, bool ordered,
                 std::vector<base::OutputColumn>* outputs);
void ReadQueue(const yaml::YamlValue& section, QueueSpec* queue);
void ReadTolerance(const yaml::YamlValue& section, Tolerance* tolerance);
void ReadSla(const yaml::YamlValue& section, std::optional<absl::Duration>* sla);
void ReadRetention(const yaml::YamlValue& section, ledger::Retention* retention);
void ReadUpload(const yaml::YamlValue& section, absl::Duration* expires);

}  // namespace muster::job
