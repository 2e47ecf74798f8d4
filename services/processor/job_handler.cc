// SPDX-License-Identifier: Apache-2.0
#include "services/processor/job_handler.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <variant>

#include "absl/base/config.h"
#include "muster/base/status.h"
#include "muster/handler/command/command_handler.h"
#include "muster/handler/command/serve.h"
#include "muster/handler/command/try_start.h"
#include "muster/job/job_file.h"

namespace muster::processor {
namespace {

using handler::command::CommandHandlerFactory;
using handler::command::CommandOptions;

// How long a suspect may take where the job gives its linked handler no deadline: it only ends a
// handler that hangs for good.
constexpr absl::Duration kIsolatedDeadline = absl::Hours(1);

// Linux bounds one environment variable by 128 KiB.
constexpr size_t kMaxServedJobBytes = 120 << 10;

constexpr char kServedJobVariable[] = "MUSTER_SERVED_JOB";

// Half of the machine's memory: a runaway handler must not take the machine down.
uint64_t HalfOfMemory() {
  const int64_t bytes = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  return static_cast<uint64_t>(std::max<int64_t>(bytes / 2, int64_t{1} << 30));
}

// AddressSanitizer and ThreadSanitizer map more than any machine has.
uint64_t IsolatedMemory() {
#if defined(ABSL_HAVE_ADDRESS_SANITIZER) || defined(ABSL_HAVE_THREAD_SANITIZER)
  return 0;
#else
  return HalfOfMemory();
#endif
}

CommandOptions Isolated(CommandOptions options) {
  options.death_is_proof = true;
  return options;
}

JobHandler LinkedHandler(const job::JobDefinition& job, const job::LinkedHandlerSpec& spec,
                         const handler::LinkedHandler& linked, base::Clock* clock) {
  JobHandler handler{
      linked.factory, linked.version, {}, std::make_shared<handler::HealthTroubles>()};
  if (job.text.size() > kMaxServedJobBytes) return handler;
  CommandOptions served;
  served.argv = {"/proc/self/exe", kServeHandler};
  served.env = {{kServedJobVariable, job.text}};
  served.deadline = spec.deadline.value_or(kIsolatedDeadline);
  served.inherits_environment = true;
  served.limits.memory_bytes = IsolatedMemory();
  served.clock = clock;
  served.restarts = handler.restarts;
  handler.isolated = CommandHandlerFactory(Isolated(served));
  return handler;
}

// Makes handlers of `command` only while the list allows it: a script may appear, or a link may
// change, after the job was applied.
handler::HandlerFactory IfAllowed(const HandlerPrograms& programs,
                                  const job::CommandHandlerSpec& command, std::string working_dir,
                                  handler::HandlerFactory make) {
  return
      [programs, command, working_dir = std::move(working_dir), make = std::move(make)](
          const handler::JobSchema& schema) -> absl::StatusOr<std::unique_ptr<handler::Handler>> {
        MUSTER_RETURN_IF_ERROR(programs.Check(command, working_dir));
        return make(schema);
      };
}

JobHandler CommandHandler(const job::JobDefinition& job, const job::CommandHandlerSpec& command,
                          const HandlerAccess& access, base::Clock* clock) {
  CommandOptions options;
  options.argv = command.argv;
  options.working_dir = job.folder;
  options.env = command.env;
  options.passed_variables = access.bounds.passed_variables;
  options.limits.memory_bytes = access.bounds.memory_bytes.value_or(HalfOfMemory());
  options.limits.file_bytes = access.bounds.file_bytes;
  options.limits.processes = access.bounds.processes;
  options.limits.dumps_core = false;
  options.deadline = command.deadline;
  options.clock = clock;
  options.restarts = std::make_shared<handler::Restarts>();
  const HandlerPrograms programs = access.programs.value_or(HandlerPrograms());
  const auto guarded = [&](handler::HandlerFactory make) {
    return IfAllowed(programs, command, job.folder, std::move(make));
  };
  const handler::HandlerFactory isolated = guarded(CommandHandlerFactory(Isolated(options)));
  options.health = std::make_shared<handler::HealthTroubles>();
  options.on_never_started = access.on_no_server;
  return {guarded(CommandHandlerFactory(options)),
          command.version,
          isolated,
          options.health,
          options.restarts,
          [options] { return handler::command::TryStart(options); }};
}

bool HasAny(const rpc::TlsFiles& tls) {
  return !tls.roots.empty() || !tls.certificate.empty() || !tls.key.empty();
}

// `isolated` stays empty: a gRPC handler runs in a process of its own anyhow.
JobHandler GrpcHandler(const job::GrpcHandlerSpec& grpc, const HandlerAccess& access,
                       base::Clock* clock) {
  handler::grpc::GrpcOptions options;
  options.address = grpc.address;
  if (HasAny(access.tls)) options.tls = access.tls;
  options.allow_plaintext = access.allow_plaintext;
  options.processor = access.instance;
  options.on_refused = access.on_refused;
  options.draining = access.draining;
  options.on_no_server = access.on_no_server;
  options.server_patience = access.server_patience;
  options.parameters.insert(grpc.env.begin(), grpc.env.end());
  options.version = grpc.version;
  options.deadline = grpc.deadline;
  options.clock = clock;
  options.health = std::make_shared<handler::HealthTroubles>();
  options.restarts = std::make_shared<handler::Restarts>();
  return {handler::grpc::GrpcHandlerFactory(options),
          grpc.version,
          {},
          options.health,
          options.restarts};
}

// Answers a stream to the original stdout, and redirects stdout to stderr, so that a handler's
// prints do not mix with the answers.
std::FILE* TakeStdout() {
  const int fd = dup(STDOUT_FILENO);
  if (fd < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) return nullptr;
  return fdopen(fd, "w");
}

}  // namespace

absl::StatusOr<JobHandler> FindHandler(const job::JobDefinition& job,
                                       const handler::HandlerRegistry& handlers,
                                       const HandlerAccess& access, base::Clock* clock) {
  if (const auto* spec = std::get_if<job::LinkedHandlerSpec>(&job.handler)) {
    MUSTER_ASSIGN_OR_RETURN(const handler::LinkedHandler* linked, handlers.Find(spec->name));
    return LinkedHandler(job, *spec, *linked, clock);
  }
  if (const auto* grpc = std::get_if<job::GrpcHandlerSpec>(&job.handler)) {
    return GrpcHandler(*grpc, access, clock);
  }
  return CommandHandler(job, std::get<job::CommandHandlerSpec>(job.handler), access, clock);
}

absl::Status ServeHandler(const handler::HandlerRegistry& handlers) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread runs yet
  const char* const text = std::getenv(kServedJobVariable);
  if (text == nullptr) {
    return absl::InvalidArgumentError("muster runs this by itself, for a suspicious work item");
  }
  MUSTER_ASSIGN_OR_RETURN(const job::JobDefinition job, job::ParseJob(text, "the job"));
  const auto* const spec = std::get_if<job::LinkedHandlerSpec>(&job.handler);
  if (spec == nullptr) return absl::InvalidArgumentError("the job has no linked handler");
  MUSTER_ASSIGN_OR_RETURN(const handler::LinkedHandler* linked, handlers.Find(spec->name));
  const handler::JobSchema schema = job.schema();
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<handler::Handler> handler, linked->factory(schema));
  std::FILE* const out = TakeStdout();
  if (out == nullptr) return absl::ErrnoToStatus(errno, "stdout");
  return handler::command::Serve(*handler, schema, stdin, out);
}

}  // namespace muster::processor
