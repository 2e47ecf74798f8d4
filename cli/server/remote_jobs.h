// JobClient: the jobs that an initiator keeps.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/server/mesh.h"
#include "muster/v1/job_service.grpc.pb.h"

namespace muster::cli {

// Statuses are the service's. Not thread-safe.
class JobClient {
 public:
  explicit JobClient(std::unique_ptr<MeshClient> mesh);

  // `expected_revision`: what the job must be at; empty: it must not be there.
  absl::StatusOr<v1::ApplyJobResponse> Apply(const std::string& definition,
                                             const std::optional<std::string>& expected_revision);
  absl::StatusOr<v1::Job> Get(const std::string& name);
  // In order of name.
  absl::StatusOr<std::vector<v1::Job>> List();
  absl::Status Delete(const std::string& name);
  absl::StatusOr<v1::CheckJobResponse> Check(const std::string& definition);

 private:
  using Stub = v1::JobService::Stub;

  std::unique_ptr<MeshClient> mesh_;
  std::unique_ptr<Stub> stub_;
};

}  // namespace muster::cli
