// Where the counting of a batch stands, as the report has it and as it travels.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "muster/handler/work_item.h"
#include "muster/report/audit.h"
#include "muster/report/counted_item.h"
#include "muster/report/report_store.h"
#include "muster/v1/item_result.pb.h"
#include "muster/v1/job_schema.pb.h"
#include "muster/v1/report_service.pb.h"

namespace muster::report {

v1::CountingProgress ToProto(const Progress& progress);
Progress FromProto(const v1::CountingProgress& proto);

// Rows of a report, as the report has them and as they travel.

v1::PartialRow ToProto(const GroupRow& row);

// DataLoss: it is no row of the group.
absl::StatusOr<GroupRow> FromProto(const v1::PartialRow& proto, const GroupShape& shape);

v1::RejectedTransaction ToProto(const RejectionRow& row);
RejectionRow FromProto(const v1::RejectedTransaction& proto);

// The groups of a batch: as its job has them, as the report keeps them, and as they travel.

// What the report must know of a batch of the job.
BatchShape ShapeOf(uint64_t batch, const handler::JobSchema& schema);

// Without the columns, of which the report knows nothing.
v1::JobSchema ToProto(const BatchShape& shape);
v1::GroupSchema ToProto(const GroupShape& shape);

// InvalidArgument: a measure is of no type. Whether a table can be made of the group,
// ValidateBatchShape tells.
absl::StatusOr<GroupShape> FromProto(const v1::GroupSchema& proto);

// What is counted of a batch at one moment, as the report has it and as it travels.

v1::GetTallyResponse ToProto(const Tally& tally);
Tally FromProto(const v1::GetTallyResponse& proto);

}  // namespace muster::report
