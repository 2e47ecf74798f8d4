// Reads what a batch adds up to from a controller in another process.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "grpcpp/channel.h"
#include "muster/report/visit.h"

namespace muster::report::remote {

// For a report as a whole, which may be long.
inline constexpr absl::Duration kDefaultReportTimeout = absl::Minutes(10);

struct ReadRequest {
  uint64_t batch = 0;
  std::string group;     // empty: all, in the job's order
  int64_t max_rows = 0;  // of each group; 0: all
  absl::Duration timeout = kDefaultReportTimeout;
};

// As report::VisitRows. All that is visited is of one moment. Statuses are those of GetReport
// (proto/muster/v1/report_service.proto); DataLoss: the answer contradicts itself. On error some of
// it may have been visited.
absl::Status ReadReport(const std::shared_ptr<grpc::Channel>& channel, const ReadRequest& request,
                        const report::RowVisitor& visitor);

}  // namespace muster::report::remote
