// SPDX-License-Identifier: Apache-2.0

// RemoteBatchRecords: the batches of initiators in other processes, for a controller, a processor
// or another initiator. It finds the initiator that has a batch by itself.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/rpc/channel.h"
#include "muster/rpc/instance_client.h"
#include "muster/rpc/limits.h"
#include "muster/v1/ledger_service.grpc.pb.h"

namespace muster::ledger::remote {

// Thread-safe. Beside the ledger's own statuses: Unavailable, when an initiator does not answer or
// none is known; and ledger::UnknownToAll, when none of the known initiators has the batch: the one
// that has it may be away for now; and Unimplemented, when an initiator that may have it is older
// than the call. An initiator that hangs costs its callers one timeout, and then
// nothing for a while (rpc::CircuitBreaker).
class RemoteBatchRecords final : public ledger::BatchRecords {
 public:
  // Each call ends after `timeout` at the latest, however many initiators it asks.
  // `clock` is not owned.
  RemoteBatchRecords(rpc::InstanceAddresses initiators, rpc::ChannelOptions channel_options,
                     absl::Duration timeout = rpc::kDefaultCallTimeout,
                     base::Clock* clock = base::RealClock());
  ~RemoteBatchRecords() override;

  absl::StatusOr<ledger::Batch> Get(uint64_t batch) override;
  absl::StatusOr<std::vector<ledger::ItemBoundary>> Items(uint64_t batch, uint64_t first_index,
                                                          size_t max_items) override;
  absl::StatusOr<ledger::BatchView> View(uint64_t batch, size_t max_items) override;
  absl::Status MarkCompleteAndTell(uint64_t batch, absl::Time when,
                                   const ledger::BatchOutcome& outcome) override;
  absl::Status MarkComplete(uint64_t batch, absl::Time when) override;
  // Has the batch's initiator give dead-lettered items, at most 1,000, another chance. Answers
  // those that get none, and why. FailedPrecondition: the batch is cancelled.
  absl::StatusOr<std::map<uint64_t, std::string>> ReopenItems(uint64_t batch,
                                                              absl::Span<const uint64_t> items);

  // A batch of the job that is not over, of any initiator that is known; nullopt: each of them has
  // answered that it has none. Unavailable: one does not answer, or none is known. Unimplemented:
  // one is older than the call. Batches of `but_of_revision` do not count, if it is not empty;
  // with an initiator that is older than this they do.
  absl::StatusOr<std::optional<uint64_t>> FindOpenBatch(const std::string& job,
                                                        const std::string& but_of_revision = "");

  // Where the batch's content lies, if that is on the host with the boot id `boot_id`.
  absl::StatusOr<v1::LocateContentResponse> LocateContent(uint64_t batch, const std::string& owner,
                                                          const std::string& boot_id);
  // Calls `take` with each piece of the items that `request` asks for, in order. After an error
  // some may have come.
  absl::Status ReadItems(const v1::ReadItemsRequest& request,
                         absl::FunctionRef<void(const v1::ReadItemsResponse& piece)> take);

 private:
  using Stub = v1::LedgerService::Stub;

  // Makes `call` to the initiator that has the batch, or to one after the other until one has it.
  absl::Status CallHome(uint64_t batch, rpc::InstanceClient<v1::LedgerService>::Call call)
      ABSL_LOCKS_EXCLUDED(mu_);
  // The same for a unary call.
  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(uint64_t batch,
                                grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                             Response*),
                                const Request& request) ABSL_LOCKS_EXCLUDED(mu_);
  std::string HomeOf(uint64_t batch) ABSL_LOCKS_EXCLUDED(mu_);
  void RememberHome(uint64_t batch, const std::string& address) ABSL_LOCKS_EXCLUDED(mu_);

  rpc::InstanceClient<v1::LedgerService> initiators_;
  const absl::Duration timeout_;

  base::Mutex mu_;
  std::map<uint64_t, std::string> homes_ ABSL_GUARDED_BY(mu_);  // address of the batch's initiator
};

}  // namespace muster::ledger::remote
