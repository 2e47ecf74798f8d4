// SPDX-License-Identifier: Apache-2.0

// QueueService: shows the queues of a store and mends them (proto/muster/v1/queue_service.proto).
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "grpcpp/server_context.h"
#include "muster/base/clock.h"
#include "muster/bus/trigger_bus.h"
#include "muster/item/held_keys.h"
#include "muster/item/redrive.h"
#include "muster/queue/queue_store.h"
#include "muster/sync/optimistic_sync_store.h"
#include "muster/v1/queue_service.grpc.pb.h"

namespace muster::queue_admin {

// At a time: each holds a thread for as long as it lasts. An operator runs one.
inline constexpr int kMaxPacedRedrives = 16;

// Thread-safe.
class QueueService final : public v1::QueueService::Service {
 public:
  // None of the pointers is owned; all outlive the service. `sync` has the records of held keys.
  // `bus` hears of messages that are ready again, from `instance`; null: listeners find them with
  // their safety checks. `clock` measures the rate of a redrive.
  QueueService(queue::QueueStore* queues, item::BatchReopener* reopener,
               sync::OptimisticSyncStore* sync, bus::TriggerBus* bus = nullptr,
               std::string instance = "", base::Clock* clock = base::RealClock())
      : queues_(queues),
        reopener_(reopener),
        held_keys_(sync),
        bus_(bus),
        instance_(std::move(instance)),
        clock_(clock) {}

  // Ends the redrives that have a rate, those that come later too. Cancelled, which clients do not
  // try again by themselves.
  void Drain() { draining_ = true; }

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
  grpc::Status ListHeldKeys(grpc::ServerContext* context, const v1::ListHeldKeysRequest* request,
                            v1::ListHeldKeysResponse* response) override;
  grpc::Status ReleaseHeldKeys(grpc::ServerContext* context,
                               const v1::ReleaseHeldKeysRequest* request,
                               v1::ReleaseHeldKeysResponse* response) override;
  grpc::Status RedriveHeldKeys(grpc::ServerContext* context,
                               const v1::RedriveHeldKeysRequest* request,
                               v1::RedriveHeldKeysResponse* response) override;
  grpc::Status PurgePoison(grpc::ServerContext* context, const v1::PurgePoisonRequest* request,
                           v1::PurgePoisonResponse* response) override;
  grpc::Status PurgeQueue(grpc::ServerContext* context, const v1::PurgeQueueRequest* request,
                          v1::PurgeQueueResponse* response) override;

 private:
  absl::StatusOr<item::RedriveSummary> RunRedrive(const item::RedriveRequest& request);
  void Trigger(const queue::QueueId& queue, int64_t messages);

  queue::QueueStore* const queues_;      // not owned
  item::BatchReopener* const reopener_;  // not owned
  item::HeldKeyStore held_keys_;
  bus::TriggerBus* const bus_;  // not owned
  const std::string instance_;
  base::Clock* const clock_;  // not owned
  std::atomic<bool> draining_ = false;
  std::atomic<int> paced_redrives_ = 0;
};

}  // namespace muster::queue_admin
