// SPDX-License-Identifier: Apache-2.0

// RemoteReportClient: the ReportClient for a controller in another process, which it is given or
// finds by itself.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/channel.h"
#include "muster/report/report_client.h"
#include "muster/report/report_store.h"
#include "muster/rpc/channel.h"
#include "muster/rpc/instance_client.h"
#include "muster/rpc/limits.h"
#include "muster/v1/report_service.grpc.pb.h"

namespace muster::report::remote {

// Thread-safe. Calls the first of the controllers that are known: there is one at a time. Statuses
// are the service's; Unavailable, too, when none is known. Each call ends after `timeout` at the
// latest, and with Unavailable at once while the controller hangs (rpc::CircuitBreaker).
class RemoteReportClient final : public report::ReportClient {
 public:
  RemoteReportClient(rpc::InstanceAddresses controllers, rpc::ChannelOptions channel_options,
                     absl::Duration timeout = rpc::kDefaultCallTimeout);

  absl::StatusOr<report::Progress> RegisterBatch(const report::BatchShape& shape) override;
  absl::StatusOr<report::Progress> GetProgress(uint64_t batch) override;
  absl::StatusOr<std::map<uint64_t, report::Progress>> ListProgress(
      absl::Span<const uint64_t> batches) override;
  absl::StatusOr<uint64_t> HighestBatch() override;
  absl::StatusOr<std::vector<uint64_t>> UncountedItems(uint64_t batch, uint64_t item_count,
                                                       uint64_t from, size_t max) override;
  absl::StatusOr<std::vector<uint64_t>> DeadLetteredItems(uint64_t batch, uint64_t from,
                                                          size_t max) override;
  absl::Status CheckCompletion(uint64_t batch) override;
  absl::StatusOr<report::StoredReceipt> GetReceipt(uint64_t batch) override;
  absl::StatusOr<report::Tally> GetTally(uint64_t batch) override;
  absl::Status ReopenDeadLettered(uint64_t batch, absl::Span<const uint64_t> items) override;
  absl::Status CancelBatch(uint64_t batch, const report::Cancellation& cancellation) override;
  absl::StatusOr<std::map<uint64_t, uint64_t>> RetriedItems(
      uint64_t batch, absl::Span<const uint64_t> items) override;
  absl::StatusOr<report::RetryClaims> ClaimRejections(uint64_t batch,
                                                      const report::RetrySelection& which,
                                                      int64_t max) override;
  absl::StatusOr<std::vector<report::RejectionPosition>> ClaimedRejections(
      uint64_t batch, int64_t retry, const report::RejectionPosition& after, size_t max) override;
  absl::StatusOr<int64_t> RecordRetry(uint64_t batch, int64_t retry,
                                      absl::Span<const report::RetriedTransaction> transactions,
                                      uint64_t retried_in) override;
  absl::StatusOr<bool> ForgetBatch(uint64_t batch) override;

 private:
  using Stub = v1::ReportService::Stub;

  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                             Response*),
                                const Request& request);

  rpc::InstanceClient<v1::ReportService> controllers_;
  const absl::Duration timeout_;
};

// ReadReport reads the rows of a batch from a controller in another process.

// For a report as a whole, which may be long.
inline constexpr absl::Duration kDefaultReportTimeout = absl::Minutes(10);

struct ReadRequest {
  uint64_t batch = 0;
  std::string group;     // empty: all, in the job's order
  int64_t max_rows = 0;  // of each group; 0: all
  absl::Duration timeout = kDefaultReportTimeout;
};

// As report::VisitRows. All visited rows are of one moment. Statuses are those of GetReport
// (proto/muster/v1/report_service.proto); DataLoss: the answer contradicts itself. On error some
// rows may have been visited.
absl::Status ReadReport(const std::shared_ptr<grpc::Channel>& channel, const ReadRequest& request,
                        const report::RowVisitor& visitor);

}  // namespace muster::report::remote
