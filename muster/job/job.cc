// SPDX-License-Identifier: Apache-2.0
#include "muster/job/job.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "muster/base/decimal.h"
#include "muster/base/quantity.h"

namespace muster::job {
namespace {

// Escaped, so that no text can look like the lines around it.
void Append(std::string* out, absl::string_view key, absl::string_view value) {
  absl::StrAppend(out, key, "=", absl::CHexEscape(value), "\n");
}

void AppendInput(std::string* out, const input::InputFormat& input) {
  const char* const kinds[] = {"csv", "jsonl", "lines"};
  Append(out, "input.format", kinds[static_cast<int>(input.kind)]);
  if (input.kind == input::InputFormat::Kind::kCsv) {
    Append(out, "input.header", input.header ? "true" : "false");
    Append(out, "input.delimiter", absl::string_view(&input.delimiter, 1));
    // Only what differs from the default: older revisions stay as they are.
    if (!input.quotes) Append(out, "input.quote", "none");
    if (input.quotes && !input.multiline) Append(out, "input.multiline", "false");
  }
  for (const input::ColumnSource& column : input.columns) {
    const int* position = std::get_if<int>(&column.source);
    Append(out, "column", column.name);
    Append(out, position != nullptr ? "position" : "source",
           position != nullptr ? absl::StrCat(*position) : std::get<std::string>(column.source));
  }
}

// What all handlers outside of the process have.
template <typename Spec>
void AppendOutside(std::string* out, const Spec& spec) {
  Append(out, "handler.deadline", base::DurationToString(spec.deadline));
  Append(out, "handler.version", spec.version);
  for (const auto& [name, value] : spec.env) {
    Append(out, "handler.env", name);
    Append(out, "handler.env.value", value);
  }
}

void AppendHandler(std::string* out, const HandlerSpec& handler) {
  if (const auto* linked = std::get_if<LinkedHandlerSpec>(&handler)) {
    return Append(out, "handler.linked", linked->name);
  }
  if (const auto* grpc = std::get_if<GrpcHandlerSpec>(&handler)) {
    // Not where the server is: its version stands for what it computes.
    Append(out, "handler.grpc", "");
    return AppendOutside(out, *grpc);
  }
  const auto& command = std::get<CommandHandlerSpec>(handler);
  for (const std::string& argument : command.argv) Append(out, "handler.argument", argument);
  AppendOutside(out, command);
}

void AppendGroup(std::string* out, const handler::GroupSchema& group) {
  Append(out, "group", group.name);
  for (const std::string& key : group.keys) Append(out, "group.key", key);
  for (const handler::MeasureSchema& measure : group.measures) {
    const bool is_int = measure.type == handler::MeasureSchema::Type::kInt;
    Append(out, "group.measure", measure.name);
    Append(out, "group.type", is_int ? "int" : absl::StrCat("decimal(", measure.scale, ")"));
  }
}

}  // namespace

bool Tolerance::Allows(int64_t rejections, int64_t transactions) const {
  if (!rejected_ppm) return rejections <= rejected;
  return base::Int128{rejections} * 1'000'000 <= base::Int128{*rejected_ppm} * transactions;
}

handler::JobSchema JobDefinition::schema() const {
  handler::JobSchema schema;
  schema.job = name;
  schema.revision = revision;
  for (const input::ColumnSource& column : input.columns) schema.columns.push_back(column.name);
  schema.groups = groups;
  schema.outputs = outputs;
  return schema;
}

std::string CanonicalText(const JobDefinition& job) {
  std::string out;
  Append(&out, "job", job.name);
  AppendInput(&out, job.input);
  Append(&out, "item.transactions", absl::StrCat(job.item.transactions));
  Append(&out, "item.max_bytes", absl::StrCat(job.item.max_bytes));
  if (job.order_by.has_value()) {
    Append(&out, "order_by", job.input.columns[static_cast<size_t>(*job.order_by)].name);
  }
  AppendHandler(&out, job.handler);
  for (const handler::GroupSchema& group : job.groups) AppendGroup(&out, group);
  for (const base::OutputColumn& column : job.outputs) {
    Append(&out, "output", column.name);
    Append(&out, "output.type", base::OutputTypeName(column));
  }
  Append(&out, "queue.partitions", absl::StrCat(job.queue.partitions));
  return out;
}

}  // namespace muster::job
