// What a job's handler and its report must know, as it travels.
#pragma once

#include "muster/handler/work_item.h"
#include "muster/v1/job_schema.pb.h"

namespace muster::handler {

v1::JobSchema ToProto(const JobSchema& schema);

}  // namespace muster::handler
