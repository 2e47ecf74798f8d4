// SPDX-License-Identifier: Apache-2.0

// Puts the rows and the rejections of a report into the pages of an answer.
#pragma once

#include <cstddef>
#include <functional>

#include "absl/status/status.h"
#include "muster/report/report_store.h"
#include "muster/v1/report_service.pb.h"

namespace muster::controller {

// The bytes of rows in one message: far below gRPC's limit, so that a slow client keeps little of
// the report in this process's memory.
inline constexpr size_t kReportPageBytes = size_t{1} << 20;

// Writes the rows that `request` asks for, page by page; answers the first error of `write`.
// NotFound: no such batch, or no such group; the message names the groups of the batch.
absl::Status WriteReport(report::ReportReader& reader, const v1::GetReportRequest& request,
                         const std::function<absl::Status(const v1::GetReportResponse&)>& write);

// Adds as many rejections as were asked for, exist, and fit; at least one always fits. NotFound: no
// such batch.
absl::Status FillRejections(report::ReportReader& reader, const v1::ListRejectionsRequest& request,
                            v1::ListRejectionsResponse* response);

}  // namespace muster::controller
