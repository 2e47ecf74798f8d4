#include "muster/report/rows.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "muster/base/decimal.h"

namespace muster::report {

v1::PartialRow ToProto(const GroupRow& row) {
  v1::PartialRow proto;
  for (const std::string& key : row.keys) proto.add_keys(key);
  for (const base::Decimal& measure : row.measures) proto.add_measures(measure.ToString());
  return proto;
}

absl::StatusOr<GroupRow> FromProto(const v1::PartialRow& proto, const GroupShape& shape) {
  if (static_cast<size_t>(proto.keys_size()) != shape.keys.size() ||
      static_cast<size_t>(proto.measures_size()) != shape.measures.size()) {
    return absl::DataLossError(absl::StrCat("group '", shape.name, "': a row of ",
                                            proto.keys_size(), " keys and ", proto.measures_size(),
                                            " measures is none of it"));
  }
  GroupRow row;
  row.keys.assign(proto.keys().begin(), proto.keys().end());
  for (const std::string& text : proto.measures()) {
    const std::optional<base::Decimal> measure = base::Decimal::TryParse(text);
    if (!measure.has_value()) {
      return absl::DataLossError(
          absl::StrCat("group '", shape.name, "': '", text, "' is no number"));
    }
    row.measures.push_back(*measure);
  }
  return row;
}

v1::RejectedTransaction ToProto(const RejectionRow& row) {
  v1::RejectedTransaction proto;
  proto.set_item(row.item);
  proto.set_line(row.line);
  proto.set_reason(row.reason);
  return proto;
}

RejectionRow FromProto(const v1::RejectedTransaction& proto) {
  RejectionRow row;
  row.item = proto.item();
  row.line = proto.line();
  row.reason = proto.reason();
  return row;
}

}  // namespace muster::report
