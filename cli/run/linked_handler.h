// FindHandlerOf: the handler that a job file names.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "cli/output/environment.h"
#include "muster/job/job.h"
#include "services/processor/job_handler.h"

namespace muster::cli {

// As processor::FindHandler; NotFound says where in `file` the job names what is not there.
absl::StatusOr<processor::JobHandler> FindHandlerOf(const job::JobDefinition& job,
                                                    const std::string& file,
                                                    const processor::HandlerAccess& access,
                                                    const Environment& environment);

}  // namespace muster::cli
