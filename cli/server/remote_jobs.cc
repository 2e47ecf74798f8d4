#include "cli/server/remote_jobs.h"

#include <utility>

#include "muster/base/status_macros.h"

namespace muster::cli {
namespace {

constexpr int kJobsPerPage = 1000;

}  // namespace

JobClient::JobClient(std::unique_ptr<MeshClient> mesh)
    : mesh_(std::move(mesh)), stub_(v1::JobService::NewStub(mesh_->initiator())) {}

absl::StatusOr<v1::ApplyJobResponse> JobClient::Apply(
    const std::string& definition, const std::optional<std::string>& expected_revision) {
  v1::ApplyJobRequest request;
  request.set_definition(definition);
  if (expected_revision.has_value()) request.set_expected_revision(*expected_revision);
  v1::ApplyJobResponse response;
  MUSTER_RETURN_IF_ERROR(mesh_->Call(*stub_, &Stub::ApplyJob, request, &response));
  return response;
}

absl::StatusOr<v1::Job> JobClient::Get(const std::string& name) {
  v1::GetJobRequest request;
  request.set_name(name);
  v1::GetJobResponse response;
  MUSTER_RETURN_IF_ERROR(mesh_->Call(*stub_, &Stub::GetJob, request, &response));
  return std::move(*response.mutable_job());
}

absl::StatusOr<std::vector<v1::Job>> JobClient::List() {
  std::vector<v1::Job> jobs;
  v1::ListJobsRequest request;
  request.set_page_size(kJobsPerPage);
  do {
    v1::ListJobsResponse response;
    MUSTER_RETURN_IF_ERROR(mesh_->Call(*stub_, &Stub::ListJobs, request, &response));
    for (v1::Job& job : *response.mutable_jobs()) jobs.push_back(std::move(job));
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty());
  return jobs;
}

absl::Status JobClient::Delete(const std::string& name) {
  v1::DeleteJobRequest request;
  request.set_name(name);
  v1::DeleteJobResponse response;
  return mesh_->Call(*stub_, &Stub::DeleteJob, request, &response);
}

absl::StatusOr<v1::CheckJobResponse> JobClient::Check(const std::string& definition) {
  v1::CheckJobRequest request;
  request.set_definition(definition);
  v1::CheckJobResponse response;
  MUSTER_RETURN_IF_ERROR(mesh_->Call(*stub_, &Stub::CheckJob, request, &response));
  return response;
}

}  // namespace muster::cli
