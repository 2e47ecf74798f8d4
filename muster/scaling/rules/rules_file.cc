#include "muster/scaling/rules/rules_file.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/input/byte_source.h"
#include "muster/scaling/rules/sections.h"
#include "muster/yaml/document.h"
#include "muster/yaml/problems.h"
#include "muster/yaml/yaml_value.h"

namespace muster::scaling::rules {
namespace {

void ReadMode(const yaml::YamlValue& value, Mode* mode) {
  size_t place = 0;
  if (ReadWord(value, {"observe", "notify", "act"}, &place)) *mode = static_cast<Mode>(place);
}

void ReadRules(const yaml::YamlValue& root, yaml::Problems* problems, Rules* rules) {
  const yaml::YamlMap map(root, RulesFileKeys().at(kTop), problems);
  ReadMode(map.Optional("mode"), &rules->mode);
  ReadTargets(map.Required("targets"), problems, rules);
  ReadConstraints(map.Optional("constraints"), problems, rules);
  ReadOperands(map.Optional("operands"), problems, rules);
  ReadReactions(map.Optional("reactive"), problems, rules);
  ReadStabilizer(map.Optional("stabilizer"), problems, rules);
  ReadMetricLoss(map.Optional("on_metric_loss"), problems, rules);
}

}  // namespace

const std::map<std::string, std::vector<std::string>>& RulesFileKeys() {
  static const auto* const keys = new std::map<std::string, std::vector<std::string>>{
      {kTop,
       {"mode", "targets", "constraints", "operands", "reactive", "stabilizer", "on_metric_loss"}},
      {kTarget, {"kind", "name", "queues", "sla", "patience", "min", "max"}},
      {kTargetSla, {"max", "aim"}},
      {kConstraint, {"name", "rank", "target", "range", "budget", "standby", "when"}},
      {kWhen, {"days", "from", "cron", "for", "tz", "prewarm"}},
      {kOperand, {"queue", "target", "metric", "agg", "over"}},
      {kReaction, {"rank", "target", "if", "do"}},
      {kDo, {"scale", "set", "hold"}},
      {kStabilizer, {"up_cooldown", "idle_hold"}},
      {kMetricLoss, {"after", "keep", "floor)"}},
  };
  return *keys;
}

absl::StatusOr<Rules> ParseRules(absl::string_view text, absl::string_view file_name) {
  yaml::Problems problems(file_name);
  Rules rules;
  const YAML::Node document = yaml::ReadDocument(text, kMaxRulesFileBytes, &problems);
  if (problems.empty()) ReadRules(yaml::YamlValue(document, "", &problems), &problems, &rules);
  MUSTER_RETURN_IF_ERROR(problems.ToStatus());
  return rules;
}

absl::StatusOr<std::string> ReadRulesText(const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<input::FileSource> file,
                          input::FileSource::Open(path, "rules file"));
  if (file->size() > kMaxRulesFileBytes) {
    return absl::InvalidArgumentError(absl::StrCat("rules file '", path, "' has ", file->size(),
                                                   " bytes; at most ", kMaxRulesFileBytes,
                                                   " are allowed"));
  }
  std::string text(static_cast<size_t>(file->size()), '\0');
  MUSTER_ASSIGN_OR_RETURN(const size_t read, file->Read(0, text.data(), text.size()));
  text.resize(read);
  return text;
}

absl::StatusOr<Rules> LoadRulesFile(const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(const std::string text, ReadRulesText(path));
  return ParseRules(text, path);
}

}  // namespace muster::scaling::rules
