#include "muster/report/remote/remote_report.h"

#include <optional>

#include "muster/base/status_macros.h"
#include "muster/report/rows.h"
#include "muster/report/schema.h"
#include "muster/rpc/channel.h"
#include "muster/rpc/status.h"
#include "muster/v1/report_service.grpc.pb.h"

namespace muster::report::remote {
namespace {

// Turns the parts of an answer into visits, in order.
class PartReader {
 public:
  explicit PartReader(const report::RowVisitor* visitor) : visitor_(*visitor) {}

  absl::Status Take(const v1::GetReportResponse& response) {
    if (response.has_schema()) {
      MUSTER_ASSIGN_OR_RETURN(group_, report::FromProto(response.schema()));
      return visitor_.on_group(*group_);
    }
    if (!group_.has_value()) return absl::DataLossError("a report's rows came before their group");
    for (const v1::PartialRow& row : response.rows().rows()) {
      MUSTER_ASSIGN_OR_RETURN(const report::GroupRow decoded, report::FromProto(row, *group_));
      visitor_.on_row(decoded);
    }
    return absl::OkStatus();
  }

 private:
  const report::RowVisitor& visitor_;
  std::optional<report::GroupShape> group_;
};

}  // namespace

absl::Status ReadReport(const std::shared_ptr<grpc::Channel>& channel, const ReadRequest& request,
                        const report::RowVisitor& visitor) {
  v1::GetReportRequest wanted;
  wanted.set_batch(request.batch);
  wanted.set_group(request.group);
  wanted.set_max_rows(request.max_rows);
  rpc::CallContext context(request.timeout);
  const auto stub = v1::ReportService::NewStub(channel);
  const auto stream = stub->GetReport(&context, wanted);
  PartReader parts(&visitor);
  absl::Status taken;
  v1::GetReportResponse response;
  while (taken.ok() && stream->Read(&response)) taken = parts.Take(response);
  if (!taken.ok()) context.TryCancel();
  const absl::Status ended = rpc::FromGrpc(stream->Finish());
  return taken.ok() ? ended : taken;
}

}  // namespace muster::report::remote
