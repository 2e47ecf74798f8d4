// The answer of GetReport: schemas and rows of one view of the report, in messages that gRPC takes.
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "muster/report/report_store.h"
#include "muster/v1/report_service.pb.h"

namespace muster::controller {

// Rows of one message, by their bytes: far below what a message may have, so that whoever reads
// slowly holds little of it in memory here.
inline constexpr size_t kReportPageBytes = size_t{1} << 20;

// Writes what `request` asks for. `write` answers false when nobody listens any more (Cancelled).
// NotFound: no such batch, or no such group, naming those that there are.
absl::Status WriteReport(report::ReportReader& reader, const v1::GetReportRequest& request,
                         const std::function<bool(const v1::GetReportResponse&)>& write);

}  // namespace muster::controller
