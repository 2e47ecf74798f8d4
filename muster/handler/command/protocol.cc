// SPDX-License-Identifier: Apache-2.0
#include "muster/handler/command/protocol.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "muster/base/output_record.h"
#include "muster/base/status.h"
#include "muster/base/text.h"
#include "muster/handler/command/strict_json.h"
#include "muster/handler/out_of_process.h"
#include "nlohmann/json.hpp"

namespace muster::handler::command {

namespace {

using nlohmann::json;

bool NeedsEscape(char c) { return static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\'; }

void AppendEscaped(char c, std::string* out) {
  constexpr char kHex[] = "0123456789abcdef";
  if (c == '"' || c == '\\') {
    *out += '\\';
    *out += c;
  } else {
    *out += "\\u00";
    *out += kHex[c >> 4];
    *out += kHex[c & 0xf];
  }
}

// `text` is UTF-8.
void AppendString(absl::string_view text, std::string* out) {
  *out += '"';
  while (!text.empty()) {
    const auto plain =
        static_cast<size_t>(std::find_if(text.begin(), text.end(), NeedsEscape) - text.begin());
    out->append(text.data(), plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    AppendEscaped(text[0], out);
    text.remove_prefix(1);
  }
  *out += '"';
}

template <typename Strings>
void AppendStrings(const Strings& strings, std::string* out) {
  *out += '[';
  bool first = true;
  for (const absl::string_view text : strings) {
    if (!first) *out += ',';
    first = false;
    AppendString(text, out);
  }
  *out += ']';
}

void AppendTransactions(const handler::JobSchema& schema, const handler::WorkItem& item,
                        handler::Results& results, std::string* out) {
  bool first = true;
  for (const handler::Transaction& transaction : item.transactions()) {
    if (handler::RejectUnlessUtf8(schema, transaction, results)) continue;
    absl::StrAppend(out, first ? "" : ",", "{\"line\":", transaction.line(), ",\"fields\":");
    first = false;
    AppendStrings(transaction.fields(), out);
    *out += '}';
  }
}

void AppendTrace(const base::TraceContext& trace, std::string* out) {
  *out += ",\"traceparent\":";
  AppendString(trace.ToTraceparent(), out);
  if (trace.state.empty()) return;
  *out += ",\"tracestate\":";
  AppendString(trace.state, out);
}

}  // namespace

std::string EncodeRequest(const handler::JobSchema& schema, const handler::WorkItem& item,
                          absl::Duration deadline, handler::Results& results) {
  std::string line = absl::StrCat("{\"muster\":", kProtocolVersion, ",\"job\":");
  AppendString(schema.job, &line);
  absl::StrAppend(&line, ",\"item\":\"", item.id(), "\",\"attempt\":", item.attempt(),
                  ",\"deadline_ms\":", absl::ToInt64Milliseconds(deadline));
  if (item.trace().has_value()) AppendTrace(*item.trace(), &line);
  line += ",\"columns\":";
  AppendStrings(schema.columns, &line);
  line += ",\"transactions\":[";
  AppendTransactions(schema, item, results, &line);
  line += "]}\n";
  return line;
}

namespace {

using base::Decimal;
using handler::GroupSchema;
using handler::JobSchema;
using handler::MeasureSchema;
using handler::Outcome;
using handler::Results;
using handler::WorkItem;
using nlohmann::json;

constexpr int kMaxAnswerDepth = 4;  // answer, groups, rows, row; answer, outputs, output, record
constexpr size_t kShownBytes = 64;

absl::Status Wrong(absl::string_view place, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(place, place.empty() ? "" : ": ", what));
}

// The answer is sound, but a value in it does not fit.
absl::Status Unfit(absl::string_view place, absl::string_view what) {
  return absl::OutOfRangeError(absl::StrCat(place, place.empty() ? "" : ": ", what));
}

std::string Shown(const std::string& text) { return base::Printable(text, kShownBytes); }

absl::Status CheckMembers(const json& object, absl::string_view place,
                          std::initializer_list<absl::string_view> allowed) {
  for (const auto& [name, value] : object.items()) {
    if (!absl::c_linear_search(allowed, absl::string_view(name))) {
      return Wrong(place, absl::StrCat("has an unknown member \"", Shown(name), "\""));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<const json*> FindMember(const json& object, absl::string_view place,
                                       const std::string& name) {
  const auto found = object.find(name);
  if (found != object.end()) return &*found;
  return Wrong(place, absl::StrCat("has no member \"", name, "\""));
}

absl::StatusOr<const std::string*> FindText(const json& object, absl::string_view place,
                                            const std::string& name) {
  MUSTER_ASSIGN_OR_RETURN(const json* const member, FindMember(object, place, name));
  if (member->is_string()) return &member->get_ref<const std::string&>();
  return Wrong(place, absl::StrCat("\"", name, "\" is no string"));
}

// A JSON number is a binary fraction to most programs, so that 0.1 is no longer 0.1: only whole
// numbers may be numbers, everything else is text.
absl::StatusOr<Decimal> ReadMeasure(const json& value) {
  if (value.is_number_unsigned()) {
    // May be above int64; 20 digits always fit.
    return *Decimal::FromUnits(value.get<uint64_t>(), 0);
  }
  if (value.is_number_integer()) return Decimal::FromInt(value.get<int64_t>());
  if (value.is_string()) return Decimal::ParseWithExponent(value.get_ref<const std::string&>());
  if (value.is_number_float()) {
    return absl::InvalidArgumentError(
        "is a JSON number with a fraction, an exponent or more than 64 bits; write it as a string");
  }
  return absl::InvalidArgumentError("is no number and no string");
}

class AnswerReader {
 public:
  AnswerReader(const JobSchema& schema, const WorkItem& item, Results& results)
      : schema_(schema), item_(item), results_(results) {}

  absl::StatusOr<Outcome> Read(const json& answer) {
    if (!answer.is_object()) return Wrong("", "the answer is no JSON object");
    MUSTER_ASSIGN_OR_RETURN(const std::string* const id, FindText(answer, "", "item"));
    if (*id != item_.id()) {
      return Wrong("", absl::StrCat("it is about item '", Shown(*id), "', not ", item_.id()));
    }
    MUSTER_ASSIGN_OR_RETURN(const std::string* const outcome, FindText(answer, "", "outcome"));
    if (*outcome == "ok") return ReadOk(answer);
    if (*outcome == "retry") return ReadPostponed(answer, Outcome::Retry);
    if (*outcome == "defer") return ReadPostponed(answer, Outcome::Defer);
    if (*outcome == "dead") return ReadDead(answer);
    return Wrong("outcome",
                 absl::StrCat("'", Shown(*outcome), "' is not one of ok, retry, defer, dead"));
  }

 private:
  absl::StatusOr<Outcome> ReadOk(const json& answer) {
    MUSTER_RETURN_IF_ERROR(
        CheckMembers(answer, "", {"item", "outcome", "groups", "rejected", "outputs"}));
    if (const auto groups = answer.find("groups"); groups != answer.end()) {
      MUSTER_RETURN_IF_ERROR(ReadGroups(*groups));
    }
    handler::OpenLines open(item_, &results_);
    if (const auto rejected = answer.find("rejected"); rejected != answer.end()) {
      MUSTER_RETURN_IF_ERROR(ReadRejected(*rejected, &open));
    }
    if (const auto outputs = answer.find("outputs"); outputs != answer.end()) {
      MUSTER_RETURN_IF_ERROR(ReadOutputs(*outputs, &open));
    }
    return handler::ConcludeOk(results_);
  }

  absl::StatusOr<Outcome> ReadPostponed(const json& answer,
                                        Outcome (*make)(absl::Duration, std::string)) {
    MUSTER_RETURN_IF_ERROR(CheckMembers(answer, "", {"item", "outcome", "after_ms", "why"}));
    int64_t after_ms = 0;
    if (const auto after = answer.find("after_ms"); after != answer.end()) {
      const int64_t max_ms = absl::ToInt64Milliseconds(handler::kMaxRetryDelay);
      if (!after->is_number_unsigned() || after->get<uint64_t>() > static_cast<uint64_t>(max_ms)) {
        return Wrong("after_ms", absl::StrCat("is no whole number from 0 to ", max_ms));
      }
      after_ms = after->get<int64_t>();
    }
    MUSTER_ASSIGN_OR_RETURN(std::string why, ReadWhy(answer));
    return make(absl::Milliseconds(after_ms), std::move(why));
  }

  absl::StatusOr<Outcome> ReadDead(const json& answer) {
    MUSTER_RETURN_IF_ERROR(CheckMembers(answer, "", {"item", "outcome", "why"}));
    MUSTER_ASSIGN_OR_RETURN(std::string why, ReadWhy(answer));
    return Outcome::Dead(std::move(why));
  }

  static absl::StatusOr<std::string> ReadWhy(const json& answer) {
    MUSTER_ASSIGN_OR_RETURN(const std::string* const why, FindText(answer, "", "why"));
    return handler::PrintableReason(*why);
  }

  absl::Status ReadGroups(const json& groups) {
    if (!groups.is_object()) return Wrong("groups", "is no JSON object");
    for (const auto& [name, rows] : groups.items()) {
      const absl::StatusOr<handler::Group> group = schema_.FindGroup(name);
      if (!group.ok()) return Wrong("groups", schema_.FindGroup(Shown(name)).status().message());
      if (!rows.is_array()) return Wrong(absl::StrCat("groups.", name), "is no JSON array");
      for (size_t i = 0; i < rows.size(); ++i) {
        MUSTER_RETURN_IF_ERROR(
            base::Annotate(ReadRow(*group, rows[i]), absl::StrCat("groups.", name, "[", i, "]")));
      }
    }
    return absl::OkStatus();
  }

  absl::Status ReadRow(handler::Group group, const json& row) {
    const GroupSchema& expected = schema_.groups[static_cast<size_t>(group.index)];
    if (!row.is_object()) return Wrong("", "is no JSON object");
    std::vector<std::string> keys;
    for (const std::string& key : expected.keys) {
      MUSTER_ASSIGN_OR_RETURN(const std::string* const text, FindText(row, "", key));
      keys.push_back(*text);
    }
    std::vector<Decimal> measures;
    for (const MeasureSchema& measure : expected.measures) {
      MUSTER_ASSIGN_OR_RETURN(const json* const value, FindMember(row, "", measure.name));
      const absl::StatusOr<Decimal> number = ReadMeasure(*value);
      if (!number.ok()) {
        return value->is_string() ? Unfit(measure.name, number.status().message())
                                  : Wrong(measure.name, number.status().message());
      }
      measures.push_back(*number);
    }
    if (row.size() != keys.size() + measures.size()) return NameExtraMember(expected, row);
    const absl::Status added = results_.AddRow(group, keys, measures);
    return added.ok() ? added : Unfit("", added.message());
  }

  static absl::Status NameExtraMember(const GroupSchema& expected, const json& row) {
    for (const auto& [name, value] : row.items()) {
      const bool is_measure = absl::c_any_of(
          expected.measures,
          [&member = name](const MeasureSchema& measure) { return measure.name == member; });
      if (!is_measure && !absl::c_linear_search(expected.keys, name)) {
        return Wrong("", absl::StrCat("has an unknown member \"", Shown(name), "\""));
      }
    }
    return Wrong("", "has too many members");
  }

  static absl::Status ReadRejected(const json& rejected, handler::OpenLines* open) {
    if (!rejected.is_array()) return Wrong("rejected", "is no JSON array");
    for (size_t i = 0; i < rejected.size(); ++i) {
      MUSTER_RETURN_IF_ERROR(
          base::Annotate(ReadRejection(rejected[i], open), absl::StrCat("rejected[", i, "]")));
    }
    return absl::OkStatus();
  }

  absl::Status ReadOutputs(const json& outputs, handler::OpenLines* open) const {
    if (schema_.outputs.empty()) return Wrong("outputs", "the job has none");
    if (!outputs.is_array()) return Wrong("outputs", "is no JSON array");
    for (size_t i = 0; i < outputs.size(); ++i) {
      MUSTER_RETURN_IF_ERROR(
          base::Annotate(ReadOutput(outputs[i], open), absl::StrCat("outputs[", i, "]")));
    }
    return absl::OkStatus();
  }

  absl::Status ReadOutput(const json& output, handler::OpenLines* open) const {
    if (!output.is_object()) return Wrong("", "is no JSON object");
    MUSTER_RETURN_IF_ERROR(CheckMembers(output, "", {"line", "record"}));
    MUSTER_ASSIGN_OR_RETURN(const json* const line, FindMember(output, "", "line"));
    MUSTER_ASSIGN_OR_RETURN(const json* const record, FindMember(output, "", "record"));
    if (!line->is_number_integer()) return Wrong("line", "is no whole number");
    if (!record->is_object()) return Wrong("record", "is no JSON object");
    std::vector<std::string> fields;
    fields.reserve(schema_.outputs.size());
    for (const base::OutputColumn& column : schema_.outputs) {
      MUSTER_ASSIGN_OR_RETURN(const json* const value, FindMember(*record, "", column.name));
      MUSTER_ASSIGN_OR_RETURN(std::string field, ReadField(column, *value));
      fields.push_back(std::move(field));
    }
    if (record->size() != fields.size()) return NameExtraField(*record);
    return open->AddOutput(line->get<int64_t>(), std::move(fields));
  }

  static absl::StatusOr<std::string> ReadField(const base::OutputColumn& column,
                                               const json& value) {
    if (value.is_null()) return "";
    if (value.is_string()) return value.get<std::string>();
    if (column.type == base::OutputColumn::Type::kText) {
      return Wrong(column.name, "is no string and not null");
    }
    const absl::StatusOr<Decimal> number = ReadMeasure(value);
    if (!number.ok()) return Wrong(column.name, number.status().message());
    return number->ToString();
  }

  absl::Status NameExtraField(const json& record) const {
    for (const auto& [name, value] : record.items()) {
      const bool is_column = absl::c_any_of(
          schema_.outputs,
          [&member = name](const base::OutputColumn& column) { return column.name == member; });
      if (!is_column) {
        return Wrong("", absl::StrCat("has an unknown member \"", Shown(name), "\""));
      }
    }
    return Wrong("", "has too many members");
  }

  static absl::Status ReadRejection(const json& rejection, handler::OpenLines* open) {
    if (!rejection.is_object()) return Wrong("", "is no JSON object");
    MUSTER_RETURN_IF_ERROR(CheckMembers(rejection, "", {"line", "reason"}));
    MUSTER_ASSIGN_OR_RETURN(const json* const line, FindMember(rejection, "", "line"));
    MUSTER_ASSIGN_OR_RETURN(const std::string* const reason, FindText(rejection, "", "reason"));
    if (!line->is_number_integer()) return Wrong("line", "is no whole number");
    return open->Reject(line->get<int64_t>(), *reason);
  }

  const JobSchema& schema_;
  const WorkItem& item_;
  Results& results_;
};

}  // namespace

absl::StatusOr<Outcome> DecodeAnswer(absl::string_view line, const JobSchema& schema,
                                     const WorkItem& item, Results& results) {
  absl::ConsumePrefix(&line, "\xEF\xBB\xBF");  // some programs begin UTF-8 with a mark
  MUSTER_ASSIGN_OR_RETURN(const json answer, ParseStrictJson(line, kMaxAnswerDepth));
  return AnswerReader(schema, item, results).Read(answer);
}

}  // namespace muster::handler::command
