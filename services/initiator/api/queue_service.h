// QueueService: shows an initiator's queues and repairs them (proto/muster/v1/queue_service.proto).
#pragma once

#include "grpcpp/server_context.h"
#include "muster/item/redrive.h"
#include "muster/queue/queue_store.h"
#include "muster/v1/queue_service.grpc.pb.h"

namespace muster::initiator::api {

// Thread-safe.
class QueueService final : public v1::QueueService::Service {
 public:
  // Neither is owned; both outlive the service.
  QueueService(queue::QueueStore* queues, item::BatchReopener* reopener)
      : queues_(queues), reopener_(reopener) {}

  grpc::Status ListQueues(grpc::ServerContext* context, const v1::ListQueuesRequest* request,
                          v1::ListQueuesResponse* response) override;
  grpc::Status GetQueueStats(grpc::ServerContext* context, const v1::GetQueueStatsRequest* request,
                             v1::GetQueueStatsResponse* response) override;
  grpc::Status PeekMessages(grpc::ServerContext* context, const v1::PeekMessagesRequest* request,
                            v1::PeekMessagesResponse* response) override;
  grpc::Status ListPoison(grpc::ServerContext* context, const v1::ListPoisonRequest* request,
                          v1::ListPoisonResponse* response) override;
  grpc::Status Redrive(grpc::ServerContext* context, const v1::RedriveRequest* request,
                       v1::RedriveResponse* response) override;
  grpc::Status PurgePoison(grpc::ServerContext* context, const v1::PurgePoisonRequest* request,
                           v1::PurgePoisonResponse* response) override;
  grpc::Status PurgeQueue(grpc::ServerContext* context, const v1::PurgeQueueRequest* request,
                          v1::PurgeQueueResponse* response) override;

 private:
  queue::QueueStore* const queues_;      // not owned
  item::BatchReopener* const reopener_;  // not owned
};

}  // namespace muster::initiator::api
