// SPDX-License-Identifier: Apache-2.0
#include "muster/report/sqlite/output_rows.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status.h"
#include "muster/report/sqlite/schema.h"
#include "muster/v1/item_result.pb.h"

namespace muster::report::sqlite {
namespace {

using Type = base::OutputColumn::Type;

constexpr char kColumns[] = "muster_output_column";

const char* NameOf(Type type) {
  switch (type) {
    case Type::kInt:
      return "int";
    case Type::kDecimal:
      return "decimal";
    case Type::kText:
      break;
  }
  return "text";
}

// The table's own check lets no other name in.
Type TypeOf(absl::string_view name) {
  if (name == "int") return Type::kInt;
  return name == "decimal" ? Type::kDecimal : Type::kText;
}

absl::Status InsertPiece(const report::CountedItem& item, int64_t piece,
                         const v1::OutputRecords& content, Statement* insert) {
  const std::string bytes = content.SerializeAsString();
  return insert->Run(item.batch, item.index, piece, content.records_size(), Blob{bytes});
}

}  // namespace

absl::Status EnsureOutputColumns(Connection* connection, const report::BatchShape& shape) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<base::OutputColumn> known,
                          LoadOutputColumns(connection, shape.job, shape.job_revision));
  if (known == shape.outputs) return absl::OkStatus();
  if (!known.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "job '", shape.job, "' revision ", shape.job_revision, " is known with other outputs"));
  }
  MUSTER_ASSIGN_OR_RETURN(
      Statement insert,
      connection->Prepare("INSERT INTO muster_output_column VALUES (?, ?, ?, ?, ?, ?)"));
  int64_t position = 0;
  for (const base::OutputColumn& column : shape.outputs) {
    MUSTER_RETURN_IF_ERROR(insert.Run(shape.job, shape.job_revision, position++, column.name,
                                      absl::string_view(NameOf(column.type)), column.scale));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<base::OutputColumn>> LoadOutputColumns(Connection* connection,
                                                                  absl::string_view job,
                                                                  absl::string_view job_revision) {
  MUSTER_ASSIGN_OR_RETURN(const bool is_there, HasTable(connection, "main", kColumns));
  if (!is_there) return std::vector<base::OutputColumn>();
  MUSTER_ASSIGN_OR_RETURN(
      Statement query, connection->Prepare("SELECT name, type, scale FROM muster_output_column "
                                           "WHERE job = ? AND job_revision = ? ORDER BY position"));
  query.Bind(job, job_revision);
  return query.Collect([&]() -> base::OutputColumn {
    return {std::string(query.Text(0)), TypeOf(query.Text(1)), static_cast<int>(query.Int(2))};
  });
}

absl::Status InsertOutputs(Connection* connection, const report::CountedItem& item) {
  if (!item.outputs.has_value() || item.outputs->empty()) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(Statement insert,
                          connection->Prepare("INSERT INTO muster_output VALUES (?, ?, ?, ?, ?)"));
  v1::OutputRecords content;
  size_t bytes = 0;
  int64_t piece = 0;
  for (const base::OutputRecord& record : *item.outputs) {
    bytes += base::OutputBytes(record.fields);
    if (content.records_size() > 0 && bytes > kOutputPieceBytes) {
      MUSTER_RETURN_IF_ERROR(InsertPiece(item, piece++, content, &insert));
      content.Clear();
      bytes = base::OutputBytes(record.fields);
    }
    v1::OutputRecord* const stored = content.add_records();
    stored->set_line(record.line);
    for (const std::string& field : record.fields) stored->add_fields(field);
  }
  return InsertPiece(item, piece, content, &insert);
}

absl::StatusOr<std::optional<report::OutputPosition>> ReadOutputs(
    Connection* connection, uint64_t batch, report::OutputPosition from, size_t max_bytes,
    const std::function<void(base::OutputRecord)>& visit) {
  MUSTER_ASSIGN_OR_RETURN(const bool is_there, HasTable(connection, "main", "muster_output"));
  if (!is_there) return std::nullopt;
  MUSTER_ASSIGN_OR_RETURN(
      Statement query,
      connection->Prepare("SELECT item, piece, records, content FROM muster_output WHERE batch = ? "
                          "AND (item, piece) >= (?, ?) ORDER BY item, piece"));
  query.Bind(batch, from.item, from.piece);
  size_t bytes = 0;
  for (;;) {
    MUSTER_ASSIGN_OR_RETURN(const bool found, query.Step());
    if (!found) return std::nullopt;
    const report::OutputPosition at{static_cast<uint64_t>(query.Int(0)),
                                    static_cast<uint64_t>(query.Int(1))};
    if (bytes >= max_bytes) return at;
    const absl::string_view stored = query.Bytes(3);
    v1::OutputRecords content;
    if (!content.ParseFromArray(stored.data(), static_cast<int>(stored.size())) ||
        content.records_size() != query.Int(2)) {
      return absl::DataLossError(
          absl::StrCat("item ", batch, "/", at.item, ": its output records are damaged"));
    }
    bytes += stored.size();
    for (v1::OutputRecord& record : *content.mutable_records()) {
      base::OutputRecord read{record.line(), {}};
      read.fields.reserve(static_cast<size_t>(record.fields_size()));
      for (std::string& field : *record.mutable_fields()) read.fields.push_back(std::move(field));
      visit(std::move(read));
    }
  }
}

}  // namespace muster::report::sqlite
