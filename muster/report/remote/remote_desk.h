// RemoteReportClient: the counting desk of a controller in another process.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/channel.h"
#include "muster/report/counting_desk.h"
#include "muster/rpc/limits.h"
#include "muster/v1/report_service.grpc.pb.h"

namespace muster::report::remote {

// Thread-safe. Statuses are as the service gave them. Whether a call that is Unavailable is tried
// again, the channel decides.
class RemoteReportClient final : public report::ReportClient {
 public:
  // Each call ends after `timeout` at the latest.
  explicit RemoteReportClient(const std::shared_ptr<grpc::Channel>& channel,
                              absl::Duration timeout = rpc::kDefaultCallTimeout)
      : stub_(v1::ReportService::NewStub(channel)), timeout_(timeout) {}

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
  using Stub = v1::ReportService::Stub;

  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                             Response*),
                                const Request& request);

  const std::unique_ptr<Stub> stub_;
  const absl::Duration timeout_;
};

}  // namespace muster::report::remote
