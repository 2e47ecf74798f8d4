#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "muster/job/job_file.h"
#include "muster/job/limits.h"
#include "muster/job/sections.h"

namespace muster::job {
namespace {

bool IsVariableName(const std::string& name) {
  return !name.empty() && !absl::ascii_isdigit(name[0]) &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return absl::ascii_isalnum(c) || c == '_'; });
}

void ReadArguments(const YamlValue& list, std::vector<std::string>* argv) {
  for (const YamlValue& entry : list.List(1, kMaxArguments)) {
    std::string argument;
    if (entry.ReadText(&argument)) argv->push_back(std::move(argument));
  }
}

void ReadEnvironment(const YamlValue& map, CommandHandlerSpec* command) {
  for (const auto& [name, value] : map.Entries(0, kMaxVariables)) {
    std::string text;
    if (!IsVariableName(name.Raw())) name.MustBe("a name of a variable: letters, digits and '_'");
    if (value.ReadText(&text)) command->env.emplace_back(name.Raw(), std::move(text));
  }
}

void RefuseForLinked(const YamlValue& value) {
  if (value.present()) value.Problem("belongs to a command handler, not to a linked one");
}

}  // namespace

void ReadHandler(const YamlValue& section, Problems* problems, HandlerSpec* handler) {
  const YamlMap map(section, JobFileKeys().at(kHandler), problems);
  const YamlValue linked = map.Optional("linked");
  const YamlValue argv = map.Optional("command");
  if (section.IsMap() && linked.present() == argv.present()) {
    return section.Problem("must have either 'linked' or 'command', and not both");
  }
  if (linked.present()) {
    LinkedHandlerSpec spec;
    linked.ReadName(&spec.name);
    for (const char* key : {"deadline", "version", "env"}) RefuseForLinked(map.Optional(key));
    *handler = std::move(spec);
    return;
  }
  CommandHandlerSpec command;
  ReadArguments(argv, &command.argv);
  map.Optional("deadline").ReadDuration(&command.deadline, kMinDeadline, kMaxDeadline);
  map.Optional("version").ReadText(&command.version);
  ReadEnvironment(map.Optional("env"), &command);
  *handler = std::move(command);
}

}  // namespace muster::job
