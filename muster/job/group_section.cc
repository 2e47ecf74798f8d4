#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "muster/base/decimal.h"
#include "muster/job/job_file.h"
#include "muster/job/limits.h"
#include "muster/job/sections.h"

namespace muster::job {
namespace {

using handler::GroupSchema;
using handler::MeasureSchema;
using yaml::Problems;
using yaml::YamlMap;
using yaml::YamlValue;

// "int", or "decimal(3)".
bool ParseType(absl::string_view text, MeasureSchema* measure) {
  measure->type = MeasureSchema::Type::kInt;
  measure->scale = 0;
  if (text == "int") return true;
  measure->type = MeasureSchema::Type::kDecimal;
  return absl::ConsumePrefix(&text, "decimal(") && absl::ConsumeSuffix(&text, ")") &&
         !text.empty() && text.size() <= 2 && absl::ascii_isdigit(text[0]) &&
         absl::SimpleAtoi(text, &measure->scale) && measure->scale <= base::Decimal::kMaxScale;
}

bool ReadMeasure(const YamlValue& name, const YamlValue& type, MeasureSchema* measure) {
  const bool named = name.ReadName(&measure->name);
  if (ParseType(type.Raw(), measure)) return named;
  type.MustBe(
      absl::StrCat("int, or decimal(S) with S from 0 to ", base::Decimal::kMaxScale, " decimals"));
  return false;
}

void ReadKeys(const YamlValue& list, GroupSchema* group) {
  for (const YamlValue& entry : list.List(1, kMaxKeys)) {
    std::string key;
    if (!entry.ReadName(&key)) continue;
    if (std::find(group->keys.begin(), group->keys.end(), key) != group->keys.end()) {
      entry.Problem(absl::StrCat("the key '", key, "' is there twice"));
    }
    group->keys.push_back(key);
  }
}

void ReadMeasures(const YamlValue& map, GroupSchema* group) {
  for (const auto& [name, type] : map.Entries(1, kMaxMeasures)) {
    MeasureSchema measure;
    if (!ReadMeasure(name, type, &measure)) continue;
    if (std::find(group->keys.begin(), group->keys.end(), measure.name) != group->keys.end()) {
      name.Problem(absl::StrCat("'", measure.name, "' is a key of the same group"));
    }
    group->measures.push_back(measure);
  }
}

}  // namespace

void ReadGroups(const YamlValue& section, Problems* problems, std::vector<GroupSchema>* groups) {
  for (const YamlValue& entry : section.List(1, kMaxGroups)) {
    const YamlMap map(entry, JobFileKeys().at(kGroup), problems);
    GroupSchema group;
    const YamlValue name = map.Required("name");
    name.ReadName(&group.name);
    ReadKeys(map.Required("keys"), &group);
    ReadMeasures(map.Required("measures"), &group);
    const bool taken = std::any_of(groups->begin(), groups->end(), [&](const GroupSchema& other) {
      return !group.name.empty() && other.name == group.name;
    });
    if (taken) name.Problem(absl::StrCat("the group '", group.name, "' is there twice"));
    groups->push_back(std::move(group));
  }
}

}  // namespace muster::job
