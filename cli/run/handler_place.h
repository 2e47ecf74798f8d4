// SPDX-License-Identifier: Apache-2.0

// HandlerPlace and FindHandlerOf: where a job file names its handler, and the handler itself.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "cli/output/environment.h"
#include "muster/job/job.h"
#include "services/processor/job_handler.h"

namespace muster::cli {

// "FILE:LINE:COLUMN: handler.command", of a program or a linked handler; of a server `file` alone.
std::string HandlerPlace(const job::JobDefinition& job, const std::string& file);

// As processor::FindHandler; NotFound names the line of `file` with the missing handler.
absl::StatusOr<processor::JobHandler> FindHandlerOf(const job::JobDefinition& job,
                                                    const std::string& file,
                                                    const processor::HandlerAccess& access,
                                                    const Environment& environment);

}  // namespace muster::cli
