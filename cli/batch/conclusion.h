// SPDX-License-Identifier: Apache-2.0

// How commands that wait for a batch say what became of it.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cli/batch/outcome.h"
#include "cli/output/environment.h"
#include "cli/server/mesh_client.h"
#include "muster/job/job.h"
#include "muster/os/stop_signals.h"
#include "muster/v1/batch_service.pb.h"

namespace muster::cli {

// How a command that waits ends on a signal: what is in hand then is durable already. `hurried` is
// what it says.
os::StopOptions OnStop(const std::string& hurried);

Outcome OutcomeOf(const v1::BatchStatus& status);

// The job as the mesh has it; nullopt: it cannot be asked, or a newer muster wrote it.
std::optional<job::JobDefinition> JobOf(const MeshClient& mesh, const std::string& name);

// The commands that read a batch's results; two lines.
std::string WhereToRead(uint64_t batch);

// The outcome of a batch that was awaited; nullopt: it was not complete in time, and the exit code
// says so. Aborted: it was cancelled.
absl::StatusOr<std::optional<Outcome>> Ended(const absl::StatusOr<v1::BatchStatus>& end,
                                             const Environment& environment);

// For a wait that --wait-timeout has ended before there was a batch to wait for: prints `what`, and
// the exit code says so.
absl::Status TimedOut(absl::string_view what, const Environment& environment);
inline constexpr char kTimeIsUp[] = "the time to wait is up";

// Adds `--wait-timeout TIME` into `timeout`, which outlives the app.
void AddWaitTimeout(CLI::App* command, absl::Duration* timeout);

}  // namespace muster::cli
