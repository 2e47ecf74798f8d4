// SPDX-License-Identifier: Apache-2.0

// PartitionService: shows the groups of a mesh and moves their partitions
// (proto/muster/v1/partition_service.proto).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "grpcpp/server_context.h"
#include "muster/partition/partition_admin.h"
#include "muster/stream/event_stream_store.h"
#include "muster/sync/optimistic_sync_store.h"
#include "muster/v1/partition_service.grpc.pb.h"

namespace muster::initiator::api {

// What the partition that a group reads keeps; nullopt: it is not known. Thread-safe.
using PartitionExtentOf =
    std::function<std::optional<stream::PartitionExtent>(const std::string& group, int partition)>;

// Thread-safe.
class PartitionService final : public v1::PartitionService::Service {
 public:
  // `sync` is not owned and outlives the service. Without `extent_of`, no lag is told.
  explicit PartitionService(sync::OptimisticSyncStore* sync, PartitionExtentOf extent_of = nullptr)
      : admin_(sync), extent_of_(std::move(extent_of)) {}

  grpc::Status ListGroups(grpc::ServerContext* context, const v1::ListGroupsRequest* request,
                          v1::ListGroupsResponse* response) override;
  grpc::Status ListPartitions(grpc::ServerContext* context,
                              const v1::ListPartitionsRequest* request,
                              v1::ListPartitionsResponse* response) override;
  grpc::Status MovePartition(grpc::ServerContext* context, const v1::MovePartitionRequest* request,
                             v1::MovePartitionResponse* response) override;
  grpc::Status Rebalance(grpc::ServerContext* context, const v1::RebalanceRequest* request,
                         v1::RebalanceResponse* response) override;
  grpc::Status ForgetGroup(grpc::ServerContext* context, const v1::ForgetGroupRequest* request,
                           v1::ForgetGroupResponse* response) override;

 private:
  v1::PartitionView ViewOf(const std::string& group, const partition::PartitionState& state) const;

  partition::PartitionAdmin admin_;
  const PartitionExtentOf extent_of_;  // may be null
};

}  // namespace muster::initiator::api
