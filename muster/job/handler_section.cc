#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "muster/job/job_file.h"
#include "muster/job/limits.h"
#include "muster/job/sections.h"

namespace muster::job {
namespace {

using yaml::Problems;
using yaml::YamlMap;
using yaml::YamlValue;

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

// "HOST:PORT", where an IPv6 address stands in brackets. Whether there is such a host is found out
// when it is called.
bool IsAddress(absl::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == absl::string_view::npos) return false;
  const absl::string_view host = text.substr(0, colon), digits = text.substr(colon + 1);
  const bool is_bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  const bool is_host = !host.empty() && (is_bracketed || !absl::StrContains(host, ':')) &&
                       std::none_of(host.begin(), host.end(), [](unsigned char c) {
                         return c <= ' ' || c >= 0x7f || c == '/' || c == '@';
                       });
  int port = 0;
  const bool is_number = !digits.empty() && std::all_of(digits.begin(), digits.end(), [](char c) {
    return absl::ascii_isdigit(static_cast<unsigned char>(c));
  });
  return is_host && is_number && absl::SimpleAtoi(digits, &port) && port >= 1 && port <= 65535;
}

using Variables = std::vector<std::pair<std::string, std::string>>;

void ReadEnvironment(const YamlValue& map, Variables* variables) {
  for (const auto& [name, value] : map.Entries(0, kMaxVariables)) {
    std::string text;
    if (!IsVariableName(name.Raw())) name.MustBe("a name of a variable: letters, digits and '_'");
    if (value.ReadText(&text)) variables->emplace_back(name.Raw(), std::move(text));
  }
}

void RefuseForLinked(const YamlValue& value) {
  if (value.present()) value.Problem("belongs to a command or grpc handler, not to a linked one");
}

// What all handlers outside of the process have.
template <typename Spec>
void ReadOutside(const YamlMap& map, Spec* spec) {
  map.Optional("deadline").ReadDuration(&spec->deadline, kMinDeadline, kMaxDeadline);
  map.Optional("version").ReadText(&spec->version);
  ReadEnvironment(map.Optional("env"), &spec->env);
}

}  // namespace

void ReadHandler(const YamlValue& section, Problems* problems, HandlerSpec* handler) {
  const YamlMap map(section, JobFileKeys().at(kHandler), problems);
  const YamlValue linked = map.Optional("linked");
  const YamlValue argv = map.Optional("command");
  const YamlValue address = map.Optional("grpc");
  const int kinds = int{linked.present()} + int{argv.present()} + int{address.present()};
  if (section.IsMap() && kinds != 1) {
    return section.Problem("must have one of 'linked', 'command' and 'grpc'");
  }
  if (linked.present()) {
    LinkedHandlerSpec spec;
    linked.ReadName(&spec.name);
    spec.line = linked.place().line;
    spec.column = linked.place().column;
    for (const char* key : {"deadline", "version", "env"}) RefuseForLinked(map.Optional(key));
    *handler = std::move(spec);
    return;
  }
  if (address.present()) {
    GrpcHandlerSpec grpc;
    if (address.ReadText(&grpc.address) && !IsAddress(grpc.address)) {
      address.Problem("must be HOST:PORT");
    }
    ReadOutside(map, &grpc);
    *handler = std::move(grpc);
    return;
  }
  CommandHandlerSpec command;
  ReadArguments(argv, &command.argv);
  ReadOutside(map, &command);
  *handler = std::move(command);
}

}  // namespace muster::job
