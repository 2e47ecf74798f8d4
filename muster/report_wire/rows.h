// Rows of a report, as the report has them and as they travel.
#pragma once

#include "absl/status/statusor.h"
#include "muster/report/report_store.h"
#include "muster/report/shape.h"
#include "muster/v1/item_result.pb.h"
#include "muster/v1/report_service.pb.h"

namespace muster::report_wire {

v1::PartialRow ToProto(const report::GroupRow& row);

// DataLoss: it is no row of the group.
absl::StatusOr<report::GroupRow> FromProto(const v1::PartialRow& proto,
                                           const report::GroupShape& shape);

v1::RejectedTransaction ToProto(const report::RejectionRow& row);
report::RejectionRow FromProto(const v1::RejectedTransaction& proto);

}  // namespace muster::report_wire
