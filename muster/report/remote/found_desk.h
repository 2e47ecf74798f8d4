// DiscoveringReportClient: the counting desk of whichever controller is there: it looks for one
// with each call.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/base/mutex.h"
#include "muster/report/remote/remote_desk.h"
#include "muster/rpc/channel.h"

namespace muster::report::remote {

// HOST:PORT of every controller that is known now, the best one first.
using ControllerAddresses = std::function<std::vector<std::string>()>;

// Thread-safe. Beside what RemoteReportClient answers: Unavailable, when no controller is known.
class DiscoveringReportClient final : public report::ReportClient {
 public:
  DiscoveringReportClient(ControllerAddresses controllers, rpc::ChannelOptions channel_options,
                          absl::Duration timeout = rpc::kDefaultCallTimeout);
  ~DiscoveringReportClient() override;

  absl::StatusOr<report::Progress> RegisterBatch(const report::BatchShape& shape) override;
  absl::StatusOr<report::Progress> GetProgress(uint64_t batch) override;
  absl::StatusOr<uint64_t> HighestBatch() override;
  absl::StatusOr<std::vector<uint64_t>> UncountedItems(uint64_t batch, uint64_t item_count,
                                                       uint64_t from, size_t max) override;
  absl::Status CheckCompletion(uint64_t batch) override;
  absl::StatusOr<report::StoredReceipt> GetReceipt(uint64_t batch) override;
  absl::StatusOr<report::Tally> GetTally(uint64_t batch) override;
  absl::Status ReopenDeadLettered(uint64_t batch, absl::Span<const uint64_t> items) override;

 private:
  absl::StatusOr<std::shared_ptr<RemoteReportClient>> Find();

  const ControllerAddresses controllers_;
  const rpc::ChannelOptions channel_options_;
  const absl::Duration timeout_;

  base::Mutex mu_;
  // Of the controller that was found last: there is one at a time.
  std::string address_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<RemoteReportClient> client_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::report::remote
