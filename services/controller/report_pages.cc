// SPDX-License-Identifier: Apache-2.0
#include "services/controller/report_pages.h"

#include <limits>
#include <utility>

#include "muster/base/status.h"
#include "muster/report/report_proto.h"
#include "muster/rpc/paging.h"

namespace muster::controller {

namespace {

using report::GroupRow;
using report::GroupShape;
using Write = std::function<absl::Status(const v1::GetReportResponse&)>;

// What a row adds to its page besides its own bytes: a tag and its length.
constexpr size_t kRowOverheadBytes = 6;

// Gathers rows until a page is full. After an error, visits the rest of the group without writing.
class PageWriter {
 public:
  PageWriter(int64_t max_rows, const Write* write)
      : max_rows_(max_rows == 0 ? std::numeric_limits<int64_t>::max() : max_rows), write_(*write) {}

  absl::Status Begin(const GroupShape& group) {
    MUSTER_RETURN_IF_ERROR(Flush());
    left_ = max_rows_;
    v1::GetReportResponse schema;
    *schema.mutable_schema() = report::ToProto(group);
    return written_ = write_(schema);
  }

  void Add(const GroupRow& row) {
    if (left_-- <= 0 || !written_.ok()) return;
    v1::PartialRow encoded = report::ToProto(row);
    const size_t bytes = encoded.ByteSizeLong() + kRowOverheadBytes;
    if (bytes_ + bytes > kReportPageBytes) written_ = Flush();
    *page_.mutable_rows()->add_rows() = std::move(encoded);
    bytes_ += bytes;
  }

  absl::Status Flush() {
    if (written_.ok() && bytes_ > 0) written_ = write_(page_);
    page_.Clear();
    bytes_ = 0;
    return written_;
  }

 private:
  const int64_t max_rows_;
  const Write& write_;
  int64_t left_ = 0;  // rows of the group
  v1::GetReportResponse page_;
  size_t bytes_ = 0;
  absl::Status written_;
};

}  // namespace

absl::Status WriteReport(report::ReportReader& reader, const v1::GetReportRequest& request,
                         const Write& write) {
  PageWriter pages(request.max_rows(), &write);
  report::RowVisitor visitor;
  visitor.on_group = [&pages](const GroupShape& group) { return pages.Begin(group); };
  visitor.on_row = [&pages](const GroupRow& row) { pages.Add(row); };
  MUSTER_RETURN_IF_ERROR(report::VisitRows(reader, request.batch(), request.group(), visitor));
  return pages.Flush();
}

absl::Status FillRejections(report::ReportReader& reader, const v1::ListRejectionsRequest& request,
                            v1::ListRejectionsResponse* response) {
  // Asks for the batch first: a missing batch would otherwise look like one without rejections.
  MUSTER_RETURN_IF_ERROR(reader.GetProgress(request.batch()).status());
  rpc::AnswerRoom room;
  const auto add = [&](const report::RejectionRow& row) {
    v1::RejectedTransaction rejected = report::ToProto(row);
    if (room.Take(rejected)) *response->add_rejections() = std::move(rejected);
  };
  if (!request.has_after()) {
    return reader.ForEachRejection(request.batch(), request.offset(), request.max(), add);
  }
  return reader.ForEachRejectionAfter(
      request.batch(), {request.after().item(), request.after().line()}, request.max(), add);
}

}  // namespace muster::controller
