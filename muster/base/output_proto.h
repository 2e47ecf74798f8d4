// SPDX-License-Identifier: Apache-2.0

// Output columns and records as protobuf messages.
#pragma once

#include "absl/status/statusor.h"
#include "muster/base/output_record.h"
#include "muster/v1/item_result.pb.h"
#include "muster/v1/job_schema.pb.h"

namespace muster::base {

v1::OutputColumn ToProto(const OutputColumn& column);
// InvalidArgument naming the column: its type is none of text, int and decimal.
absl::StatusOr<OutputColumn> FromProto(const v1::OutputColumn& proto);

v1::OutputRecord ToProto(const OutputRecord& record);
OutputRecord FromProto(const v1::OutputRecord& proto);

}  // namespace muster::base
