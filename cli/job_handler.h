// Which handler a job names, and how to make it.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "muster/base/clock.h"
#include "muster/handler/handler.h"
#include "muster/handler/registry.h"
#include "muster/job/job.h"

namespace muster::cli {

struct JobHandler {
  handler::HandlerFactory factory;
  std::string version;  // pinned to a batch
};

// NotFound: the job names a linked handler that this program does not have. `clock` is not owned.
absl::StatusOr<JobHandler> FindHandler(const job::JobDefinition& job,
                                       const handler::HandlerRegistry& handlers,
                                       base::Clock* clock);

}  // namespace muster::cli
