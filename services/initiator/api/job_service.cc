// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/api/job_service.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/fingerprint.h"
#include "muster/base/log.h"
#include "muster/base/proto_time.h"
#include "muster/base/status.h"
#include "muster/handler/schema_proto.h"
#include "muster/job/job_file.h"
#include "muster/job/limits.h"
#include "muster/rpc/paging.h"
#include "muster/rpc/server.h"
#include "muster/rpc/status.h"
#include "muster/yaml/problems.h"

namespace muster::initiator::api {
namespace {

using job::JobEntry;
using job::JobSummary;

absl::Status RequireName(absl::string_view name) {
  return name.empty() ? rpc::BadField("name", "is empty") : absl::OkStatus();
}

void FillJob(const JobEntry& entry, const job::JobDefinition& definition, v1::Job* job) {
  job->set_name(entry.name);
  job->set_definition(entry.definition);
  job->set_revision(entry.revision);
  *job->mutable_schema() = handler::ToProto(definition.schema());
  *job->mutable_updated() = base::ToProto(entry.updated);
}

// A later muster may refuse a definition that an earlier one accepted: the job then has no schema.
void FillJob(const JobEntry& entry, v1::Job* job) {
  const absl::StatusOr<job::JobDefinition> definition = job::ParseJob(entry.definition, "");
  FillJob(entry, definition.value_or(job::JobDefinition()), job);
  if (!definition.ok()) job->clear_schema();
}

// A token is the name of the last job of the page before.
absl::Status RequireToken(const std::string& token) {
  const bool is_one =
      token.size() <= job::kMaxNameBytes && std::all_of(token.begin(), token.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
      });
  return is_one ? absl::OkStatus() : rpc::BadField("page_token", "is none of a response");
}

}  // namespace

JobService::JobService(job::JobRegistry* registry, bus::TriggerBus* bus, std::string instance,
                       FindRunningBatch find_running_batch)
    : registry_(registry),
      bus_(bus),
      instance_(std::move(instance)),
      find_running_batch_(std::move(find_running_batch)) {}

grpc::Status JobService::ApplyJob(grpc::ServerContext* context, const v1::ApplyJobRequest* request,
                                  v1::ApplyJobResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    std::optional<std::string> expected;
    if (request->has_expected_revision()) expected = request->expected_revision();
    const bool is_revision = !expected.has_value() || expected->empty() ||
                             base::Fingerprint128::FromHex(*expected).has_value();
    if (!is_revision)
      return rpc::BadField("expected_revision", "is no revision of 32 hexadecimal digits");
    const absl::StatusOr<job::Applied> applied = registry_->Apply(request->definition(), expected);
    if (absl::IsInvalidArgument(applied.status())) {
      return rpc::WithViolations(applied.status(), {{"definition", "has mistakes"}});
    }
    MUSTER_RETURN_IF_ERROR(applied.status());
    // Also if nothing has changed: an earlier call may have stored the job and failed before its
    // event.
    PublishJobChanged(applied->entry.name);
    FillJob(applied->entry, applied->job, response->mutable_job());
    response->set_revised(applied->revised);
    return absl::OkStatus();
  });
}

grpc::Status JobService::GetJob(grpc::ServerContext* context, const v1::GetJobRequest* request,
                                v1::GetJobResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_RETURN_IF_ERROR(RequireName(request->name()));
    MUSTER_ASSIGN_OR_RETURN(const JobEntry entry, registry_->Get(request->name()));
    FillJob(entry, response->mutable_job());
    return absl::OkStatus();
  });
}

grpc::Status JobService::ListJobs(grpc::ServerContext* context, const v1::ListJobsRequest* request,
                                  v1::ListJobsResponse* response) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    const std::optional<int> page_size = rpc::PageSize(request->page_size());
    if (!page_size.has_value()) {
      return rpc::BadField("page_size", absl::StrCat("is not within 0 to ", rpc::kMaxPageSize));
    }
    MUSTER_RETURN_IF_ERROR(RequireToken(request->page_token()));
    MUSTER_ASSIGN_OR_RETURN(const std::vector<JobSummary> all, registry_->Summaries());
    rpc::AnswerRoom room;
    for (const JobSummary& summary : all) {
      if (summary.name <= request->page_token()) continue;
      if (response->jobs_size() == *page_size) {
        response->set_next_page_token(response->jobs().rbegin()->name());
        break;
      }
      const absl::StatusOr<JobEntry> entry = registry_->Get(summary.name);
      if (absl::IsNotFound(entry.status())) continue;  // deleted meanwhile
      MUSTER_RETURN_IF_ERROR(entry.status());
      v1::Job job;
      FillJob(*entry, &job);
      if (!room.Take(job)) {
        response->set_next_page_token(response->jobs().rbegin()->name());
        break;
      }
      *response->add_jobs() = std::move(job);
    }
    return absl::OkStatus();
  });
}

grpc::Status JobService::DeleteJob(grpc::ServerContext* context,
                                   const v1::DeleteJobRequest* request, v1::DeleteJobResponse*) {
  return rpc::Answer(*context, [&]() -> absl::Status {
    MUSTER_RETURN_IF_ERROR(RequireName(request->name()));
    MUSTER_RETURN_IF_ERROR(registry_->Get(request->name()).status());
    MUSTER_ASSIGN_OR_RETURN(const std::optional<uint64_t> batch,
                            find_running_batch_(request->name()));
    if (batch.has_value()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "batch ", *batch, " of job '", request->name(), "' is not over: `muster batch get ",
          *batch, "` says what it waits for, `muster batch cancel ", *batch, "` gives it up"));
    }
    MUSTER_RETURN_IF_ERROR(registry_->Delete(request->name()));
    PublishJobChanged(request->name());
    return absl::OkStatus();
  });
}

grpc::Status JobService::CheckJob(grpc::ServerContext* context, const v1::CheckJobRequest* request,
                                  v1::CheckJobResponse* response) {
  return rpc::Answer(*context, [&] {
    job::JobDefinition job;
    for (const yaml::Problem& problem : job::CheckJob(request->definition(), &job)) {
      v1::JobProblem* const proto = response->add_problems();
      proto->set_line(problem.place.line);
      proto->set_column(problem.place.column);
      proto->set_message(problem.message);
    }
    if (response->problems().empty()) {
      FillJob({job.name, job.text, job.revision, absl::Time()}, job, response->mutable_job());
      response->mutable_job()->clear_updated();
    }
    return absl::OkStatus();
  });
}

void JobService::PublishJobChanged(absl::string_view job) {
  base::LogUnlessOk(
      base::kWarning, "others learn of a changed job only when they look for it",
      bus_->Publish({.from = instance_, .payload = bus::JobChangedEvent{.job = std::string(job)}}),
      {{"job", job}});
}

}  // namespace muster::initiator::api
