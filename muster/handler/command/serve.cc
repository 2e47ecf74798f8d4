// SPDX-License-Identifier: Apache-2.0
#include "muster/handler/command/serve.h"

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "muster/base/output_record.h"
#include "muster/base/status.h"
#include "muster/base/trace_context.h"
#include "muster/handler/command/protocol.h"
#include "muster/handler/command/strict_json.h"

namespace muster::handler::command {
namespace {

using handler::Outcome;
using nlohmann::json;
using nlohmann::ordered_json;

constexpr int kMaxRequestDepth = 4;  // request, transactions, transaction, fields

// A request, with the texts that its work item views.
struct Request {
  std::string id;
  handler::ItemContext context;
  std::vector<int64_t> lines;
  std::vector<std::vector<std::string>> texts;  // by transaction
  std::vector<std::vector<absl::string_view>> fields;

  std::vector<handler::Transaction> Transactions() const {
    std::vector<handler::Transaction> transactions;
    for (size_t i = 0; i < lines.size(); ++i) {
      transactions.emplace_back(static_cast<int>(i), lines[i], fields[i].data(),
                                static_cast<int>(fields[i].size()));
    }
    return transactions;
  }
};

// "batch/index" or "batch/index:line".
bool ReadId(absl::string_view id, handler::ItemContext* context) {
  const std::pair<absl::string_view, absl::string_view> name_and_line =
      absl::StrSplit(id, absl::MaxSplits(':', 1));
  const std::pair<absl::string_view, absl::string_view> name =
      absl::StrSplit(name_and_line.first, absl::MaxSplits('/', 1));
  if (!name_and_line.second.empty()) {
    int64_t line = 0;
    if (!absl::SimpleAtoi(name_and_line.second, &line)) return false;
    context->only_line = line;
  }
  return absl::SimpleAtoi(name.first, &context->batch) &&
         absl::SimpleAtoi(name.second, &context->index);
}

// nlohmann's accessors throw what the caller catches.
Request ReadMembers(const json& object) {
  Request request;
  request.id = object.at("item").get<std::string>();
  request.context.attempt = object.at("attempt").get<int>();
  const std::string traceparent = object.value("traceparent", "");
  if (auto trace = base::TraceContext::FromTraceparent(traceparent); trace.ok()) {
    trace->state = object.value("tracestate", "");
    request.context.trace = *std::move(trace);
  }
  for (const json& transaction : object.at("transactions")) {
    request.lines.push_back(transaction.at("line").get<int64_t>());
    request.texts.push_back(transaction.at("fields").get<std::vector<std::string>>());
  }
  for (const std::vector<std::string>& texts : request.texts) {
    request.fields.emplace_back(texts.begin(), texts.end());
  }
  return request;
}

absl::StatusOr<Request> DecodeRequest(absl::string_view line, const handler::JobSchema& schema) {
  MUSTER_ASSIGN_OR_RETURN(const json object, ParseStrictJson(line, kMaxRequestDepth));
  try {
    if (object.at("muster").get<int>() != kProtocolVersion) {
      return absl::InvalidArgumentError("the request is of another version");
    }
    if (object.at("columns").get<std::vector<std::string>>() != schema.columns) {
      return absl::InvalidArgumentError("the request has other columns than the job");
    }
    Request request = ReadMembers(object);
    if (!ReadId(request.id, &request.context)) {
      return absl::InvalidArgumentError(absl::StrCat("'", request.id, "' names no item"));
    }
    for (const std::vector<std::string>& texts : request.texts) {
      if (texts.size() == schema.columns.size()) continue;
      return absl::InvalidArgumentError("a transaction has not a field for each column");
    }
    return request;
  } catch (const json::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("no request: ", error.what()));
  }
}

ordered_json RowOf(const handler::GroupSchema& group, const handler::PartialRow& row) {
  ordered_json shown = ordered_json::object();
  for (size_t i = 0; i < row.keys.size(); ++i) shown[group.keys[i]] = row.keys[i];
  for (size_t i = 0; i < row.measures.size(); ++i) {
    shown[group.measures[i].name] = row.measures[i].ToString();
  }
  return shown;
}

void AddOutputs(const handler::JobSchema& schema, handler::Results& results, ordered_json* answer) {
  ordered_json outputs = ordered_json::array();
  for (base::OutputRecord& output : results.TakeOutputs()) {
    ordered_json record = ordered_json::object();
    for (size_t i = 0; i < output.fields.size(); ++i) {
      record[schema.outputs[i].name] = std::move(output.fields[i]);
    }
    outputs.push_back({{"line", output.line}, {"record", std::move(record)}});
  }
  if (!outputs.empty()) (*answer)["outputs"] = std::move(outputs);
}

void AddResults(const handler::JobSchema& schema, handler::Results& results, ordered_json* answer) {
  ordered_json groups = ordered_json::object();
  for (const handler::GroupPartial& partial : results.TakePartials()) {
    const auto group = schema.FindGroup(partial.group);
    for (const handler::PartialRow& row : partial.rows) {
      groups[partial.group].push_back(RowOf(schema.groups[static_cast<size_t>(group->index)], row));
    }
  }
  (*answer)["groups"] = std::move(groups);
  ordered_json rejected = ordered_json::array();
  for (const handler::Rejection& rejection : results.rejections()) {
    rejected.push_back({{"line", rejection.line}, {"reason", rejection.reason}});
  }
  (*answer)["rejected"] = std::move(rejected);
  AddOutputs(schema, results, answer);
}

absl::string_view NameOf(Outcome::Kind kind) {
  switch (kind) {
    case Outcome::Kind::kOk:
      return "ok";
    case Outcome::Kind::kDead:
      return "dead";
    case Outcome::Kind::kDefer:
    case Outcome::Kind::kRelease:  // the contract has no word for it: no program is stopped so
      return "defer";
    case Outcome::Kind::kUnset:
    case Outcome::Kind::kRetry:
    case Outcome::Kind::kUnfit:  // a linked handler has none
      break;
  }
  return "retry";
}

std::string EncodeAnswer(const handler::JobSchema& schema, const std::string& id,
                         const Outcome& outcome, handler::Results& results) {
  ordered_json answer;
  answer["item"] = id;
  answer["outcome"] = NameOf(outcome.kind);
  if (outcome.kind == Outcome::Kind::kOk) {
    AddResults(schema, results, &answer);
  } else {
    const bool is_dead = outcome.kind == Outcome::Kind::kDead;
    if (!is_dead) answer["after_ms"] = absl::ToInt64Milliseconds(outcome.delay);
    answer["why"] = outcome.why.empty() ? "the handler gave no reason" : outcome.why;
  }
  // A linked handler's reasons may be any bytes.
  return answer.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

absl::Status Answer(handler::Handler& handler, const handler::JobSchema& schema,
                    absl::string_view line, std::FILE* out) {
  MUSTER_ASSIGN_OR_RETURN(const Request request, DecodeRequest(line, schema));
  const handler::WorkItem item(request.context, request.Transactions());
  handler::Results results(&schema, static_cast<int>(request.lines.size()));
  const Outcome outcome = handler::ProcessGuarded(handler, item, results);
  const std::string answer = EncodeAnswer(schema, request.id, outcome, results);
  const bool written =
      std::fwrite(answer.data(), 1, answer.size(), out) == answer.size() && std::fflush(out) == 0;
  return written ? absl::OkStatus() : absl::UnavailableError("the answers have no reader");
}

}  // namespace

absl::Status Serve(handler::Handler& handler, const handler::JobSchema& schema, std::FILE* in,
                   std::FILE* out) {
  char* buffer = nullptr;
  size_t capacity = 0;
  absl::Status status;
  while (status.ok()) {
    const ssize_t size = getline(&buffer, &capacity, in);
    if (size < 0) break;
    status = Answer(handler, schema, absl::string_view(buffer, static_cast<size_t>(size)), out);
  }
  std::free(buffer);
  return status;
}

}  // namespace muster::handler::command
