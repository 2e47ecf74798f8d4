// SPDX-License-Identifier: Apache-2.0

// ScheduleService: the schedules of a mesh, for users (proto/muster/v1/schedule_service.proto).
#pragma once

#include <functional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "grpcpp/server_context.h"
#include "muster/base/clock.h"
#include "muster/job/job_registry.h"
#include "muster/schedule/schedule_store.h"
#include "muster/v1/schedule_service.grpc.pb.h"
#include "services/initiator/schedule/runner.h"

namespace muster::initiator::api {

// Thread-safe.
class ScheduleService final : public v1::ScheduleService::Service {
 public:
  struct Dependencies {
    muster::schedule::ScheduleStore* store = nullptr;  // not owned
    job::JobRegistry* jobs = nullptr;                  // not owned
    base::Clock* clock = nullptr;                      // not owned
    schedule::Submit submit;
    // Called with the name after each change of a schedule.
    std::function<void(absl::string_view)> wake;
  };

  explicit ScheduleService(Dependencies dependencies) : deps_(std::move(dependencies)) {}

  grpc::Status CreateSchedule(grpc::ServerContext* context,
                              const v1::CreateScheduleRequest* request,
                              v1::CreateScheduleResponse* response) override;
  grpc::Status UpdateSchedule(grpc::ServerContext* context,
                              const v1::UpdateScheduleRequest* request,
                              v1::UpdateScheduleResponse* response) override;
  grpc::Status GetSchedule(grpc::ServerContext* context, const v1::GetScheduleRequest* request,
                           v1::GetScheduleResponse* response) override;
  grpc::Status ListSchedules(grpc::ServerContext* context, const v1::ListSchedulesRequest* request,
                             v1::ListSchedulesResponse* response) override;
  grpc::Status PauseSchedule(grpc::ServerContext* context, const v1::PauseScheduleRequest* request,
                             v1::PauseScheduleResponse* response) override;
  grpc::Status ResumeSchedule(grpc::ServerContext* context,
                              const v1::ResumeScheduleRequest* request,
                              v1::ResumeScheduleResponse* response) override;
  grpc::Status RunSchedule(grpc::ServerContext* context, const v1::RunScheduleRequest* request,
                           v1::RunScheduleResponse* response) override;
  grpc::Status DeleteSchedule(grpc::ServerContext* context,
                              const v1::DeleteScheduleRequest* request,
                              v1::DeleteScheduleResponse* response) override;

 private:
  // The job of the schedule. InvalidArgument, NotFound: no schedule can be so.
  absl::StatusOr<job::JobDefinition> Check(const v1::ScheduleSpec& spec) const;
  // InvalidArgument: each batch that the schedule has now would be refused with the job of `spec`.
  // A schedule that is not there, or whose content cannot be read now, is not judged.
  absl::Status CheckContentFor(const v1::ScheduleSpec& spec, const job::JobDefinition& job) const;
  absl::StatusOr<v1::ScheduleRecord> Change(const std::string& name,
                                            absl::FunctionRef<bool(v1::ScheduleRecord*)> change);
  void Fill(const v1::ScheduleRecord& record, v1::Schedule* schedule) const;

  const Dependencies deps_;
};

}  // namespace muster::initiator::api
