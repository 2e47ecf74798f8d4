// SPDX-License-Identifier: Apache-2.0
#include "muster/base/output_record.h"

#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "muster/base/decimal.h"
#include "muster/base/text.h"

namespace muster::base {
namespace {

using Type = OutputColumn::Type;

// Of a field on the wire and in the report.
constexpr size_t kFieldOverheadBytes = 4;

absl::Status Misfit(const OutputColumn& column, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("outputs: ", column.name, ": ", why));
}

absl::Status FitNumber(const OutputColumn& column, std::string* field) {
  if (field->empty()) return absl::OkStatus();
  const absl::StatusOr<Decimal> value = Decimal::ParseWithExponent(*field);
  if (!value.ok()) return Misfit(column, value.status().message());
  const bool is_int = column.type == Type::kInt;
  if (value->Trimmed().scale() > column.scale) {
    return Misfit(column, is_int ? absl::StrCat(Quoted(*field), " is not a whole number")
                                 : absl::StrCat(Quoted(*field), " needs more than ", column.scale,
                                                " decimals"));
  }
  const std::optional<Decimal> scaled = value->TryRescale(column.scale);
  if (!scaled || (is_int && !scaled->FitsInt64())) return Misfit(column, "overflows");
  *field = scaled->ToString();
  return absl::OkStatus();
}

absl::Status FitText(const OutputColumn& column, const std::string& field) {
  if (!IsValidUtf8(field)) return Misfit(column, "not UTF-8 text");
  if (field.find('\0') != std::string::npos) return Misfit(column, "a NUL is not allowed");
  return absl::OkStatus();
}

}  // namespace

size_t OutputBytes(const std::vector<std::string>& fields) {
  size_t bytes = kFieldOverheadBytes;
  for (const std::string& field : fields) bytes += field.size() + kFieldOverheadBytes;
  return bytes;
}

absl::Status FitOutputFields(absl::Span<const OutputColumn> columns,
                             std::vector<std::string>* fields) {
  if (fields->size() != columns.size()) {
    return absl::InvalidArgumentError(absl::StrCat("outputs: a record has ", fields->size(),
                                                   fields->size() == 1 ? " field" : " fields",
                                                   ", the job ", columns.size(), " columns"));
  }
  if (const size_t bytes = OutputBytes(*fields); bytes > kMaxOutputRecordBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("outputs: a record of ", bytes, " bytes; at most ", kMaxOutputRecordBytes));
  }
  for (size_t i = 0; i < columns.size(); ++i) {
    const bool is_text = columns[i].type == Type::kText;
    const absl::Status fits =
        is_text ? FitText(columns[i], (*fields)[i]) : FitNumber(columns[i], &(*fields)[i]);
    if (!fits.ok()) return fits;
  }
  return absl::OkStatus();
}

std::string OutputTypeName(const OutputColumn& column) {
  switch (column.type) {
    case Type::kInt:
      return "int";
    case Type::kDecimal:
      return absl::StrCat("decimal(", column.scale, ")");
    case Type::kText:
      break;
  }
  return "text";
}

}  // namespace muster::base
