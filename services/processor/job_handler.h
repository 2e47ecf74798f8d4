// SPDX-License-Identifier: Apache-2.0

// JobHandler: the handler that a job names, and how to make it. FindHandler finds it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/handler/grpc/grpc_handler.h"
#include "muster/handler/handler.h"
#include "muster/handler/health_troubles.h"
#include "muster/handler/restarts.h"
#include "muster/job/job.h"
#include "muster/rpc/tls.h"
#include "services/processor/handler_programs.h"

namespace muster::processor {

struct JobHandler {
  handler::HandlerFactory factory;
  std::string version;  // pinned to a batch
  // The same handler in a process of its own, with bounded memory, so that a fatal item kills only
  // that process. Empty when the job file is too long to be handed to that process.
  handler::HandlerFactory isolated;
  // Where the handlers of `factory` report what keeps them from working; those of `isolated` do
  // not.
  std::shared_ptr<handler::HealthTroubles> health;
  // Where all of them note that a program, or a call of a server, had to be followed by another.
  std::shared_ptr<handler::Restarts> restarts = std::make_shared<handler::Restarts>();
  // Starts the handler's program without an item and ends it again, as command::TryStart says.
  // Empty: the handler is no program.
  std::function<absl::Status()> try_start = {};
};

// What a program of a job gets from this process, and may take from the machine:
// docs/command_handlers.md says what that protects.
struct ProgramBounds {
  // Variables that programs get beside the usual ones.
  std::vector<std::string> passed_variables = {};
  // Each process that a program consists of; 0: no limit. Unset: half of the machine's memory.
  std::optional<uint64_t> memory_bytes = std::nullopt;
  uint64_t file_bytes = uint64_t{1} << 30;  // of each file that it writes
  uint64_t processes = 1024;                // on top of those that the machine runs
};

// How a process runs the handlers of jobs that are programs, and calls those that are gRPC servers.
struct HandlerAccess {
  std::string instance = "local";  // the caller's name, for their logs
  // The client's TLS files. Empty: plaintext, which is for loopback only.
  rpc::TlsFiles tls = {};
  bool allow_plaintext = false;  // allows plaintext to other hosts, too
  // Which programs `command` may run; unset: as UsualPrograms says for a service, any for a user
  // who runs a job file of their own.
  std::optional<HandlerPrograms> programs = std::nullopt;
  ProgramBounds bounds = {};
  // Called on a worker's thread when the handler refuses the job; may be empty.
  std::function<void(const absl::Status&)> on_refused = {};
  // Called likewise when no handler server of the job's version is there for server_patience, as
  // GrpcOptions says, and when no program of the job could ever be started, as CommandOptions says.
  std::function<void(const absl::Status&)> on_no_server = {};
  absl::Duration server_patience = handler::grpc::kServerPatience;
  // Set: items that wait for a handler server are released, those with it are finished.
  std::stop_token draining = {};
};

// NotFound: the job names a linked handler that this program does not have. `clock` is not owned.
absl::StatusOr<JobHandler> FindHandler(const job::JobDefinition& job,
                                       const handler::HandlerRegistry& handlers,
                                       const HandlerAccess& access, base::Clock* clock);

// The hidden command with which this program starts itself as the process for suspects. It serves
// the linked handler of the job that an environment variable holds.
inline constexpr char kServeHandler[] = "serve-handler";
absl::Status ServeHandler(const handler::HandlerRegistry& handlers);

}  // namespace muster::processor
