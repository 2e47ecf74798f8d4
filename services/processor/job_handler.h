// Which handler a job names, and how to make it.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/handler/grpc/grpc_handler.h"
#include "muster/handler/handler.h"
#include "muster/handler/health.h"
#include "muster/job/job.h"
#include "muster/rpc/tls.h"

namespace muster::processor {

struct JobHandler {
  handler::HandlerFactory factory;
  std::string version;  // pinned to a batch
  // The same handler in a process of its own, with bounded memory, that dies of an item only once.
  // Empty when the job file is too long to be handed to that process.
  handler::HandlerFactory isolated;
  // Where its handlers tell what keeps them from working; those of `isolated` do not.
  std::shared_ptr<handler::HealthIssues> health;
};

// How a process calls the handlers that are servers.
struct HandlerAccess {
  std::string instance = "local";  // the caller's name, for their logs
  // As a client has them. None at all: plaintext, which is for loopback.
  rpc::TlsFiles tls = {};
  bool allow_plaintext = false;  // to other hosts, too
  // The handler cannot work on such a job. From a worker's thread; may be empty.
  std::function<void(const absl::Status&)> on_refused = {};
  // Nobody was at its address for reach_patience, and never before. As on_refused.
  std::function<void(const absl::Status&)> on_unreached = {};
  absl::Duration reach_patience = handler::grpc::kReachPatience;
};

// NotFound: the job names a linked handler that this program does not have. `clock` is not owned.
absl::StatusOr<JobHandler> FindHandler(const job::JobDefinition& job,
                                       const handler::HandlerRegistry& handlers,
                                       const HandlerAccess& access, base::Clock* clock);

// The hidden command by which a suspect's process is this program again; it serves the linked
// handler of the job that the environment tells.
inline constexpr char kServeHandler[] = "serve-handler";
absl::Status ServeHandler(const handler::HandlerRegistry& handlers);

}  // namespace muster::processor
