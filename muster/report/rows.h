// Rows of a report, as the report has them and as they travel.
#pragma once

#include "absl/status/statusor.h"
#include "muster/report/report_store.h"
#include "muster/report/shape.h"
#include "muster/v1/item_result.pb.h"
#include "muster/v1/report_service.pb.h"

namespace muster::report {

v1::PartialRow ToProto(const GroupRow& row);

// DataLoss: it is no row of the group.
absl::StatusOr<GroupRow> FromProto(const v1::PartialRow& proto, const GroupShape& shape);

v1::RejectedTransaction ToProto(const RejectionRow& row);
RejectionRow FromProto(const v1::RejectedTransaction& proto);

}  // namespace muster::report
