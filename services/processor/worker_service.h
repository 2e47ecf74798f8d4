// SPDX-License-Identifier: Apache-2.0

// WorkerService: lets authorised callers inspect and control the listeners of a processor.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/v1/worker_service.grpc.pb.h"
#include "services/processor/job_listeners.h"

namespace muster::processor {

// The RPCs and their errors are described in proto/muster/v1/worker_service.proto. Thread-safe.
class WorkerService final : public v1::WorkerService::Service {
 public:
  // Neither is owned; both outlive the service.
  WorkerService(JobListeners* listeners, base::Clock* clock)
      : listeners_(listeners), clock_(clock) {}

  grpc::Status QueryState(grpc::ServerContext* context, const v1::QueryStateRequest* request,
                          v1::QueryStateResponse* response) override;
  grpc::Status StartListener(grpc::ServerContext* context, const v1::StartListenerRequest* request,
                             v1::StartListenerResponse* response) override;
  grpc::Status SetOptions(grpc::ServerContext* context, const v1::SetOptionsRequest* request,
                          v1::SetOptionsResponse* response) override;
  grpc::Status Pause(grpc::ServerContext* context, const v1::PauseRequest* request,
                     v1::PauseResponse* response) override;
  grpc::Status Resume(grpc::ServerContext* context, const v1::ResumeRequest* request,
                      v1::ResumeResponse* response) override;
  grpc::Status Drain(grpc::ServerContext* context, const v1::DrainRequest* request,
                     v1::DrainResponse* response) override;

 private:
  using Served = std::vector<JobListener>;

  // The listener of `job`; an empty `job`: all listeners. NotFound: the job has no listener.
  absl::StatusOr<Served> Find(const std::string& job);
  void Report(const Served& served,
              google::protobuf::RepeatedPtrField<v1::ListenerState>* states) const;

  JobListeners* const listeners_;  // not owned
  base::Clock* const clock_;       // not owned
  // Held while options change: each change is checked against the current options.
  base::Mutex options_mu_;
};

}  // namespace muster::processor
