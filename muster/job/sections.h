// The sections of a job file: each function reads one of them into its part of a JobDefinition.
#pragma once

#include "muster/job/job.h"
#include "muster/job/problems.h"
#include "muster/job/yaml_value.h"

namespace muster::job {

// Where in JobFileKeys the keys of a map stand.
inline constexpr char kTop[] = "";
inline constexpr char kInput[] = "input";
inline constexpr char kItem[] = "item";
inline constexpr char kHandler[] = "handler";
inline constexpr char kGroup[] = "groups[]";
inline constexpr char kQueue[] = "queue";
inline constexpr char kTolerate[] = "tolerate";
inline constexpr char kSla[] = "sla";

void ReadInput(const YamlValue& section, Problems* problems, input::InputFormat* input);
void ReadItem(const YamlValue& section, Problems* problems, ItemLimits* item);
void ReadHandler(const YamlValue& section, Problems* problems, HandlerSpec* handler);
void ReadGroups(const YamlValue& section, Problems* problems,
                std::vector<handler::GroupSchema>* groups);
void ReadQueue(const YamlValue& section, Problems* problems, QueueSpec* queue);
void ReadTolerance(const YamlValue& section, Problems* problems, Tolerance* tolerance);
void ReadSla(const YamlValue& section, Problems* problems, std::optional<absl::Duration>* sla);

}  // namespace muster::job
