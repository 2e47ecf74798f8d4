// The groups of a batch: as its job has them, as the report keeps them, and as they travel.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "muster/handler/schema.h"
#include "muster/report/shape.h"
#include "muster/v1/job_schema.pb.h"

namespace muster::report {

// What the report must know of a batch of the job.
BatchShape ShapeOf(uint64_t batch, const handler::JobSchema& schema);

// Without the columns, of which the report knows nothing.
v1::JobSchema ToProto(const BatchShape& shape);
v1::GroupSchema ToProto(const GroupShape& shape);

// InvalidArgument: a measure is of no type. Whether a table can be made of the group,
// ValidateBatchShape tells.
absl::StatusOr<GroupShape> FromProto(const v1::GroupSchema& proto);

}  // namespace muster::report
