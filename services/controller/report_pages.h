// Answers that may be long: what one view of the report has, in messages that gRPC takes.
#pragma once

#include <cstddef>
#include <functional>

#include "absl/status/status.h"
#include "muster/report/report_store.h"
#include "muster/v1/report_service.pb.h"

namespace muster::controller {

// Rows of one message, by their bytes: far below what a message may have, so that whoever reads
// slowly holds little of it in memory here.
inline constexpr size_t kReportPageBytes = size_t{1} << 20;

// Of a list that is answered as a whole, with room to what gRPC takes for what surrounds it.
inline constexpr size_t kReportAnswerBytes = size_t{3} << 20;

// Writes what `request` asks for. `write` answers false when nobody listens any more (Cancelled).
// NotFound: no such batch, or no such group, naming those that there are.
absl::Status WriteReport(report::ReportReader& reader, const v1::GetReportRequest& request,
                         const std::function<bool(const v1::GetReportResponse&)>& write);

// As many rejections as were asked for, are there, and fit; one always does. NotFound: no such
// batch.
absl::Status FillRejections(report::ReportReader& reader, const v1::ListRejectionsRequest& request,
                            v1::ListRejectionsResponse* response);

}  // namespace muster::controller
