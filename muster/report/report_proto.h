// SPDX-License-Identifier: Apache-2.0

// Conversions between the report's types and their proto forms.
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

// Rows of a report.

v1::PartialRow ToProto(const GroupRow& row);

// DataLoss: `proto` is no row of the group.
absl::StatusOr<GroupRow> FromProto(const v1::PartialRow& proto, const GroupShape& shape);

v1::RejectedTransaction ToProto(const RejectionRow& row);
RejectionRow FromProto(const v1::RejectedTransaction& proto);
v1::RetryClaim ToProto(const RetryClaim& claim);
RetryClaim FromProto(const v1::RetryClaim& proto);

// The groups of a batch: as its job has them, as the report keeps them, and as messages.
//
// What the report must know of a batch of the job.
BatchShape ShapeOf(uint64_t batch, const handler::JobSchema& schema);

// Without the columns, which the report does not know.
v1::JobSchema ToProto(const BatchShape& shape);
v1::GroupSchema ToProto(const GroupShape& shape);

// InvalidArgument: a measure has no valid type. ValidateBatchShape checks whether a table can be
// made of the group.
absl::StatusOr<GroupShape> FromProto(const v1::GroupSchema& proto);

// The tally of a batch at one moment.

v1::GetTallyResponse ToProto(const Tally& tally);
Tally FromProto(const v1::GetTallyResponse& proto);

}  // namespace muster::report
