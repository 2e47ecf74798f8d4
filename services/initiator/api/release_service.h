// SPDX-License-Identifier: Apache-2.0

// ReleaseService: lets parked processors go, and shows who is parked, for users
// (proto/muster/v1/release_service.proto).
#pragma once

#include "absl/strings/string_view.h"
#include "grpcpp/server_context.h"
#include "muster/bus/roster.h"
#include "muster/release/releases.h"
#include "muster/v1/release_service.grpc.pb.h"

namespace muster::initiator::api {

// Thread-safe.
class ReleaseService final : public v1::ReleaseService::Service {
 public:
  // Neither is owned. `roster` knows who is parked.
  ReleaseService(release::Releases* releases, bus::Roster* roster)
      : releases_(releases), roster_(roster) {}

  grpc::Status Release(grpc::ServerContext* context, const v1::ReleaseRequest* request,
                       v1::ReleaseResponse* response) override;
  grpc::Status Arm(grpc::ServerContext* context, const v1::ArmRequest* request,
                   v1::ArmResponse* response) override;
  grpc::Status GetRelease(grpc::ServerContext* context, const v1::GetReleaseRequest* request,
                          v1::GetReleaseResponse* response) override;

 private:
  // The processors that wait or waited for release `name`.
  void FillWorkers(absl::string_view name, v1::ReleaseStatus* status) const;

  release::Releases* const releases_;  // not owned
  bus::Roster* const roster_;          // not owned
};

}  // namespace muster::initiator::api
