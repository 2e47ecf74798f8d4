// What a job's handler and its report must know, as it travels.
#pragma once

#include "muster/handler/schema.h"
#include "muster/v1/job_schema.pb.h"

namespace muster::job_wire {

v1::JobSchema ToProto(const handler::JobSchema& schema);

}  // namespace muster::job_wire
