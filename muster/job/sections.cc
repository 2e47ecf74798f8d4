// SPDX-License-Identifier: Apache-2.0
#include "muster/job/sections.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "muster/base/decimal.h"
#include "muster/base/text.h"
#include "muster/job/job_file.h"
#include "muster/job/limits.h"
#include "muster/queue/limits.h"

namespace muster::job {

namespace {

using input::ColumnSource;
using input::InputFormat;
using yaml::YamlMap;
using yaml::YamlValue;

bool IsVariableName(const std::string& name) {
  return !name.empty() && !absl::ascii_isdigit(name[0]) &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return absl::ascii_isalnum(c) || c == '_'; });
}

// A command line as the list that starts it; by a shell where only that can read it.
std::string AsList(absl::string_view command_line) {
  if (command_line.find_first_of("\"'\\$|<>&;*?~`") != absl::string_view::npos) {
    return absl::StrCat("[sh, -c, \"",
                        absl::StrReplaceAll(command_line, {{"\\", "\\\\"}, {"\"", "\\\""}}), "\"]");
  }
  const std::vector<absl::string_view> words =
      absl::StrSplit(command_line, absl::ByAnyChar(" \t\n"), absl::SkipEmpty());
  return absl::StrCat("[\"", absl::StrJoin(words, "\", \""), "\"]");
}

// An argument may be empty, the program may not.
void ReadArguments(const YamlValue& list, std::vector<std::string>* argv) {
  if (!list.Raw().empty()) {
    return list.Problem(absl::StrCat("must be a list of 1 to ", kMaxArguments,
                                     " entries, not a command line: write ", AsList(list.Raw())));
  }
  bool is_program = true;
  for (const YamlValue& entry : list.List(1, kMaxArguments)) {
    std::string argument;
    const bool is_read = is_program ? entry.ReadText(&argument) : entry.ReadTextOrEmpty(&argument);
    if (is_read) argv->push_back(std::move(argument));
    is_program = false;
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
    if (value.ReadTextOrEmpty(&text)) variables->emplace_back(name.Raw(), std::move(text));
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

void ReadHandler(const YamlValue& section, HandlerSpec* handler) {
  const YamlMap map(section, JobFileKeys().at(kHandler));
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
    for (const char* key : {"version", "env"}) RefuseForLinked(map.Optional(key));
    absl::Duration deadline;
    if (map.Optional("deadline").ReadDuration(&deadline, kMinDeadline, kMaxDeadline)) {
      spec.deadline = deadline;
    }
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

namespace {

using handler::GroupSchema;
using handler::MeasureSchema;

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
  const size_t columns = group->keys.size() + group->measures.size();
  if (columns <= base::kMaxGroupColumns) return;
  map.Problem(absl::StrCat("a group has at most ", base::kMaxGroupColumns,
                           " keys and measures together, not ", columns,
                           ": make two groups of it"));
}

}  // namespace

void ReadGroups(const YamlValue& section, std::vector<GroupSchema>* groups) {
  for (const YamlValue& entry : section.List(1, kMaxGroups)) {
    const YamlMap map(entry, JobFileKeys().at(kGroup));
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

namespace {

bool ParseOutputType(absl::string_view text, base::OutputColumn* column) {
  column->type = base::OutputColumn::Type::kText;
  if (text == "text") return true;
  MeasureSchema number;
  if (!ParseType(text, &number)) return false;
  column->type = number.type == MeasureSchema::Type::kInt ? base::OutputColumn::Type::kInt
                                                          : base::OutputColumn::Type::kDecimal;
  column->scale = number.scale;
  return true;
}

}  // namespace

void ReadOutputs(const YamlValue& section, bool ordered, std::vector<base::OutputColumn>* outputs) {
  if (ordered) {
    section.Problem(
        "cannot be given together with order_by: the items of such a job do not follow the order "
        "of the input, in which records come out");
  }
  const YamlMap map(section, JobFileKeys().at(kOutputs));
  for (const auto& [name, type] : map.Required("columns").Entries(1, base::kMaxOutputColumns)) {
    base::OutputColumn column;
    const bool named = name.ReadName(&column.name);
    if (!ParseOutputType(type.Raw(), &column)) {
      type.MustBe(absl::StrCat("text, int, or decimal(S) with S from 0 to ",
                               base::Decimal::kMaxScale, " decimals"));
    } else if (named) {
      outputs->push_back(std::move(column));
    }
  }
}

namespace {

// Parts per million of a share such as "1%" or "0.05%".
std::optional<int64_t> ParseShare(absl::string_view text) {
  if (!absl::ConsumeSuffix(&text, "%")) return std::nullopt;
  const std::optional<base::Decimal> percent = base::Decimal::TryParse(text);
  if (!percent) return std::nullopt;
  const std::optional<base::Decimal> exact = percent->TryRescale(4);
  if (!exact || exact->units() < 0 || exact->units() > 1'000'000) return std::nullopt;
  return static_cast<int64_t>(exact->units());
}

}  // namespace

void ReadItem(const YamlValue& section, ItemLimits* item) {
  const YamlMap map(section, JobFileKeys().at(kItem));
  map.Optional("transactions").ReadInt(&item->transactions, 1, kMaxItemTransactions);
  int64_t bytes;
  if (map.Optional("max_bytes").ReadBytes(&bytes, kMinItemBytes, kMaxItemBytes)) {
    item->max_bytes = static_cast<size_t>(bytes);
  }
}

void ReadOrder(const YamlValue& value, const InputFormat& input, std::optional<int>* order_by) {
  std::string wanted;
  if (!value.ReadText(&wanted)) return;
  std::vector<std::string> names;
  for (const ColumnSource& column : input.columns) names.push_back(column.name);
  const auto found = std::find(names.begin(), names.end(), wanted);
  if (found != names.end()) {
    *order_by = static_cast<int>(found - names.begin());
  } else if (!names.empty()) {  // else the columns have a problem of their own
    value.Problem(absl::StrCat("the job has no column ", base::Quoted(wanted),
                               base::DidYouMean(wanted, names),
                               " (its columns: ", base::ListNames(names), ")"));
  }
}

void ReadOnPoison(const YamlValue& value, bool is_ordered, OnPoison* on_poison) {
  std::string wanted;
  if (!value.ReadText(&wanted)) return;
  if (wanted != "skip" && wanted != "hold") {
    value.Problem(absl::StrCat("is ", base::Quoted(wanted), ", must be skip or hold"));
  } else if (!is_ordered) {
    value.Problem("needs order_by: without it no item waits for another one");
  } else {
    *on_poison = wanted == "hold" ? OnPoison::kHold : OnPoison::kSkip;
  }
}

void ReadQueue(const YamlValue& section, QueueSpec* queue) {
  const YamlMap map(section, JobFileKeys().at(kQueue));
  map.Optional("partitions").ReadInt(&queue->partitions, 1, kMaxPartitions);
  map.Optional("max_attempts").ReadInt(&queue->max_attempts, 1, kMaxAttempts);
  absl::Duration visibility;
  if (map.Optional("visibility").ReadDuration(&visibility, kMinVisibility, queue::kMaxVisibility)) {
    queue->visibility = visibility;
  }
  // Job files of before may have it; items do not expire.
  const YamlValue ttl = map.Optional("ttl");
  absl::Duration ignored;
  if (ttl.Raw() != "never") ttl.ReadDuration(&ignored, kMinTtl, kMaxTtl);
  absl::Duration max_drain;
  if (map.Optional("max_drain").ReadDuration(&max_drain, kMinDrain, kMaxDrain)) {
    queue->max_drain = max_drain;
  }
  const YamlValue content = map.Optional("content");
  if (content.present() && !content.ReadWord({"reference", "inline"}, &queue->content_inline)) {
    content.MustBe("reference or inline");
  }
}

void ReadTolerance(const YamlValue& section, Tolerance* tolerance) {
  const YamlMap map(section, JobFileKeys().at(kTolerate));
  const YamlValue rejected = map.Optional("rejected");
  if (!rejected.present()) return;
  if (rejected.IsNumber()) {
    rejected.ReadInt(&tolerance->rejected, 0, std::numeric_limits<int64_t>::max());
    return;
  }
  tolerance->rejected_ppm = ParseShare(rejected.Raw());
  if (!tolerance->rejected_ppm) {
    rejected.MustBe("a count, or a share from 0% to 100% with at most 4 decimals");
  }
}

void ReadSla(const YamlValue& section, std::optional<absl::Duration>* sla) {
  const YamlMap map(section, JobFileKeys().at(kSla));
  absl::Duration max;
  if (map.Required("max").ReadDuration(&max, kMinSla, kMaxSla)) *sla = max;
}

void ReadUpload(const YamlValue& section, absl::Duration* expires) {
  const YamlMap map(section, JobFileKeys().at(kUpload));
  map.Required("expires").ReadDuration(expires, kMinUploadExpiry, kMaxUploadExpiry);
}

void ReadRetention(const YamlValue& section, ledger::Retention* retention) {
  const YamlMap map(section, JobFileKeys().at(kRetention));
  const auto read = [&map](const char* key, absl::Duration* kept) {
    const YamlValue value = map.Optional(key);
    if (value.present()) value.ReadDuration(kept, kMinRetention, kMaxRetention);
    return value;
  };
  const YamlValue content = read("content", &retention->content);
  const YamlValue items = read("items", &retention->items);
  const YamlValue batch = read("batch", &retention->batch);
  // What is not said follows what is: a short retention of the whole batch is one line.
  if (!content.present()) {
    if (items.present()) retention->content = std::min(retention->content, retention->items);
    if (batch.present()) retention->content = std::min(retention->content, retention->batch);
  }
  if (!items.present()) {
    if (batch.present()) retention->items = std::min(retention->items, retention->batch);
    retention->items = std::max(retention->items, retention->content);
  }
  if (!batch.present()) retention->batch = std::max(retention->batch, retention->items);
  if (items.present() && retention->items < retention->content) {
    items.MustBe("at least as long as content");
  } else if (retention->batch < retention->items) {
    batch.MustBe(items.present() ? "at least as long as items" : "at least as long as content");
  }
}

}  // namespace muster::job
