// SPDX-License-Identifier: Apache-2.0
#include "muster/base/output_proto.h"

#include "absl/strings/str_cat.h"

namespace muster::base {
namespace {

v1::OutputType TypeOf(const OutputColumn& column) {
  switch (column.type) {
    case OutputColumn::Type::kInt:
      return v1::OUTPUT_TYPE_INT;
    case OutputColumn::Type::kDecimal:
      return v1::OUTPUT_TYPE_DECIMAL;
    case OutputColumn::Type::kText:
      break;
  }
  return v1::OUTPUT_TYPE_TEXT;
}

}  // namespace

v1::OutputColumn ToProto(const OutputColumn& column) {
  v1::OutputColumn proto;
  proto.set_name(column.name);
  proto.set_type(TypeOf(column));
  proto.set_scale(column.scale);
  return proto;
}

absl::StatusOr<OutputColumn> FromProto(const v1::OutputColumn& proto) {
  switch (proto.type()) {
    case v1::OUTPUT_TYPE_TEXT:
      return OutputColumn{proto.name(), OutputColumn::Type::kText, proto.scale()};
    case v1::OUTPUT_TYPE_INT:
      return OutputColumn{proto.name(), OutputColumn::Type::kInt, proto.scale()};
    case v1::OUTPUT_TYPE_DECIMAL:
      return OutputColumn{proto.name(), OutputColumn::Type::kDecimal, proto.scale()};
    default:  // also a type that a newer muster has
      return absl::InvalidArgumentError(
          absl::StrCat("output column '", proto.name(), "' is neither text nor int nor decimal"));
  }
}

v1::OutputRecord ToProto(const OutputRecord& record) {
  v1::OutputRecord proto;
  proto.set_line(record.line);
  for (const std::string& field : record.fields) proto.add_fields(field);
  return proto;
}

OutputRecord FromProto(const v1::OutputRecord& proto) {
  return {proto.line(), {proto.fields().begin(), proto.fields().end()}};
}

}  // namespace muster::base
