// Rows of a group, as the report has them and as they travel.
#pragma once

#include "absl/status/statusor.h"
#include "muster/report/report_store.h"
#include "muster/report/shape.h"
#include "muster/v1/item_result.pb.h"

namespace muster::report_wire {

v1::PartialRow ToProto(const report::GroupRow& row);

// DataLoss: it is no row of the group.
absl::StatusOr<report::GroupRow> FromProto(const v1::PartialRow& proto,
                                           const report::GroupShape& shape);

}  // namespace muster::report_wire
