// SPDX-License-Identifier: Apache-2.0
#include "cli/batch/conclusion.h"

#include "absl/strings/str_cat.h"
#include "cli/output/format.h"
#include "muster/args/option.h"
#include "muster/base/quantity.h"
#include "muster/base/status.h"
#include "muster/job/job_file.h"
#include "muster/ledger/batch_proto.h"

namespace muster::cli {

os::StopOptions OnStop(const std::string& hurried) {
  return {.grace = absl::Seconds(5),
          .exit_code = kInterrupted,
          .when_late = hurried,
          .when_hurried = hurried};
}

Outcome OutcomeOf(const v1::BatchStatus& status) {
  Outcome outcome;
  outcome.batch = status.batch();
  outcome.job = status.job();
  outcome.counted = ProgressOf(status);
  outcome.seconds = status.seconds();
  outcome.transactions_per_second = status.transactions_per_second();
  outcome.complete = status.complete();
  outcome.promise = PromiseOf(status);
  outcome.multiline = ledger::FromProto(status.multiline());
  return outcome;
}

std::optional<job::JobDefinition> JobOf(const MeshClient& mesh, const std::string& name) {
  const absl::StatusOr<v1::Job> kept = mesh.Job(name);
  if (!kept.ok()) return std::nullopt;
  absl::StatusOr<job::JobDefinition> job = job::ParseJob(kept->definition(), name);
  if (!job.ok()) return std::nullopt;
  return *std::move(job);
}

std::string WhereToRead(uint64_t batch) {
  return absl::StrCat("report:  muster report ", batch, "\nreceipt: muster batch receipt ", batch,
                      "\n");
}

absl::StatusOr<std::optional<Outcome>> Ended(const absl::StatusOr<v1::BatchStatus>& end,
                                             const Environment& environment) {
  if (absl::IsDeadlineExceeded(end.status())) {
    environment.Fail(end.status());
    environment.exit_code = kTimedOut;
    return std::nullopt;
  }
  MUSTER_RETURN_IF_ERROR(end.status());
  if (end->state() == v1::BATCH_STATE_CANCELLED) {
    const std::string& why = end->cancel_reason();
    return absl::AbortedError(absl::StrCat("batch ", end->batch(), " was cancelled",
                                           why.empty() ? "" : ": ", Printable(why)));
  }
  return OutcomeOf(*end);
}

absl::Status TimedOut(absl::string_view what, const Environment& environment) {
  return Ended(absl::DeadlineExceededError(what), environment).status();
}

void AddWaitTimeout(CLI::App* command, absl::Duration* timeout) {
  args::AddFunction(
      command, "--wait-timeout",
      [timeout](const std::string& text) {
        *timeout = base::ParseDuration(text).value_or(*timeout);
      },
      "Wait no longer than this, as 30s; then exit with 124")
      .Check([](const std::string& text) {
        return std::string(base::ParseDuration(text).status().message());
      });
}

}  // namespace muster::cli
