// RemoteBatchRecords: the batches of initiators in other processes, for a controller or another
// initiator. It finds the initiator that has a batch by itself.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "muster/base/mutex.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/rpc/channel.h"
#include "muster/rpc/limits.h"
#include "muster/v1/ledger_service.grpc.pb.h"

namespace muster::ledger::remote {

// HOST:PORT of every initiator that is known now.
using KnownInitiators = std::function<std::vector<std::string>()>;

// Thread-safe. Beside the ledger's own statuses: Unavailable, when an initiator does not answer,
// and when none of the known initiators has the batch, because the one that has it may be away for
// now.
class RemoteBatchRecords final : public ledger::BatchRecords {
 public:
  // Each call ends after `timeout` at the latest.
  RemoteBatchRecords(KnownInitiators initiators, rpc::ChannelOptions channel_options,
                     absl::Duration timeout = rpc::kDefaultCallTimeout);
  ~RemoteBatchRecords() override;

  absl::StatusOr<ledger::Batch> Get(uint64_t batch) override;
  absl::StatusOr<std::vector<ledger::ItemBoundary>> Items(uint64_t batch, uint64_t first_index,
                                                          size_t max_items) override;
  absl::Status MarkComplete(uint64_t batch, absl::Time when) override;
  // Has the batch's initiator give dead-lettered items, at most 1,000, another chance.
  // FailedPrecondition: the batch is cancelled.
  absl::Status ReopenItems(uint64_t batch, absl::Span<const uint64_t> items);

 private:
  using Stub = v1::LedgerService::Stub;

  // As Ask, for a unary call.
  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(uint64_t batch,
                                grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                             Response*),
                                const Request& request);
  // Runs `call` on the initiator that has the batch, or on one after the other until one has it.
  absl::Status Ask(uint64_t batch, const std::function<absl::Status(Stub&)>& call)
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<std::shared_ptr<Stub>> StubOf(const std::string& address) ABSL_LOCKS_EXCLUDED(mu_);
  std::string HomeOf(uint64_t batch) ABSL_LOCKS_EXCLUDED(mu_);
  void RememberHome(uint64_t batch, const std::string& address) ABSL_LOCKS_EXCLUDED(mu_);

  const KnownInitiators initiators_;
  const rpc::ChannelOptions channel_options_;
  const absl::Duration timeout_;

  base::Mutex mu_;
  std::map<std::string, std::shared_ptr<Stub>> stubs_ ABSL_GUARDED_BY(mu_);
  std::map<uint64_t, std::string> homes_ ABSL_GUARDED_BY(mu_);  // address of the batch's initiator
};

}  // namespace muster::ledger::remote
