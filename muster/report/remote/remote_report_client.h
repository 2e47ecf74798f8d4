// RemoteReportClient: the ReportClient for a controller in another process, which it is given or
// finds by itself.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/channel.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/report/report_client.h"
#include "muster/report/report_store.h"
#include "muster/rpc/channel.h"
#include "muster/rpc/circuit_breaker.h"
#include "muster/rpc/limits.h"
#include "muster/v1/report_service.grpc.pb.h"

namespace muster::report::remote {

// HOST:PORT of every controller that is known now, the best one first.
using ControllerAddresses = std::function<std::vector<std::string>()>;

// Thread-safe. Statuses are the service's. The channel decides whether a call that is Unavailable
// is tried again. Each call ends after `timeout` at the latest, and with Unavailable at once while
// the controller hangs (rpc::CircuitBreaker).
class RemoteReportClient final : public report::ReportClient {
 public:
  explicit RemoteReportClient(const std::shared_ptr<grpc::Channel>& channel,
                              absl::Duration timeout = rpc::kDefaultCallTimeout);
  // Looks for the best controller with each call; Unavailable when none is known.
  RemoteReportClient(ControllerAddresses controllers, rpc::ChannelOptions channel_options,
                     absl::Duration timeout = rpc::kDefaultCallTimeout);

  absl::StatusOr<report::Progress> RegisterBatch(const report::BatchShape& shape) override;
  absl::StatusOr<report::Progress> GetProgress(uint64_t batch) override;
  absl::StatusOr<std::map<uint64_t, report::Progress>> ListProgress(
      absl::Span<const uint64_t> batches) override;
  absl::StatusOr<uint64_t> HighestBatch() override;
  absl::StatusOr<std::vector<uint64_t>> UncountedItems(uint64_t batch, uint64_t item_count,
                                                       uint64_t from, size_t max) override;
  absl::Status CheckCompletion(uint64_t batch) override;
  absl::StatusOr<report::StoredReceipt> GetReceipt(uint64_t batch) override;
  absl::StatusOr<report::Tally> GetTally(uint64_t batch) override;
  absl::Status ReopenDeadLettered(uint64_t batch, absl::Span<const uint64_t> items) override;
  absl::StatusOr<bool> ForgetBatch(uint64_t batch) override;

 private:
  using Stub = v1::ReportService::Stub;
  // A controller, as calls see it.
  struct Controller {
    Controller(const std::string& host_port, const std::shared_ptr<grpc::Channel>& channel)
        : address(host_port),
          stub(v1::ReportService::NewStub(channel)),
          breaker("controller " + host_port, base::RealClock()) {}

    const std::string address;
    const std::unique_ptr<Stub> stub;
    rpc::CircuitBreaker breaker;
  };

  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                             Response*),
                                const Request& request);
  absl::StatusOr<std::shared_ptr<Controller>> FindController() ABSL_LOCKS_EXCLUDED(mu_);

  const ControllerAddresses controllers_;  // unset: controller_ is the only one
  const rpc::ChannelOptions channel_options_;
  const absl::Duration timeout_;

  base::Mutex mu_;
  // The one found last: there is one at a time. Shared with the calls under way, which go on when
  // another controller is found.
  std::shared_ptr<Controller> controller_ ABSL_GUARDED_BY(mu_);
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
