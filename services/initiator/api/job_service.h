// SPDX-License-Identifier: Apache-2.0

// JobService: the jobs of a mesh, for users (proto/muster/v1/job_service.proto).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "grpcpp/server_context.h"
#include "muster/bus/trigger_bus.h"
#include "muster/job/job_registry.h"
#include "muster/v1/job_service.grpc.pb.h"

namespace muster::initiator::api {

// A batch of the job that is neither complete nor cancelled; nullopt: there is none.
using FindRunningBatch =
    std::function<absl::StatusOr<std::optional<uint64_t>>(absl::string_view job)>;

// Thread-safe. After each change the service publishes a JobChangedEvent; delivery is best effort,
// as the bus's.
class JobService final : public v1::JobService::Service {
 public:
  // Neither `registry` nor `bus` is owned. `instance` is the sender of events. `find_running_batch`
  // is called on the threads of calls.
  JobService(job::JobRegistry* registry, bus::TriggerBus* bus, std::string instance,
             FindRunningBatch find_running_batch);

  grpc::Status ApplyJob(grpc::ServerContext* context, const v1::ApplyJobRequest* request,
                        v1::ApplyJobResponse* response) override;
  grpc::Status GetJob(grpc::ServerContext* context, const v1::GetJobRequest* request,
                      v1::GetJobResponse* response) override;
  grpc::Status ListJobs(grpc::ServerContext* context, const v1::ListJobsRequest* request,
                        v1::ListJobsResponse* response) override;
  grpc::Status DeleteJob(grpc::ServerContext* context, const v1::DeleteJobRequest* request,
                         v1::DeleteJobResponse* response) override;
  grpc::Status CheckJob(grpc::ServerContext* context, const v1::CheckJobRequest* request,
                        v1::CheckJobResponse* response) override;

 private:
  void PublishJobChanged(absl::string_view job);

  job::JobRegistry* const registry_;  // not owned
  bus::TriggerBus* const bus_;        // not owned
  const std::string instance_;
  const FindRunningBatch find_running_batch_;
};

}  // namespace muster::initiator::api
