// SPDX-License-Identifier: Apache-2.0

// The proto form of a JobSchema.
#pragma once

#include "muster/handler/work_item.h"
#include "muster/v1/job_schema.pb.h"

namespace muster::handler {

v1::JobSchema ToProto(const JobSchema& schema);

}  // namespace muster::handler
