#include "cli/batch/report_view.h"

#include <utility>

#include "cli/server/mesh.h"
#include "cli/server/place.h"
#include "muster/backend/backend.h"
#include "muster/base/status_macros.h"
#include "muster/report/remote/remote_report.h"

namespace muster::cli {
namespace {

class LocalReport final : public ReportView {
 public:
  LocalReport(std::unique_ptr<report::ReportStore> store,
              std::unique_ptr<report::ReportReader> reader)
      : store_(std::move(store)), reader_(std::move(reader)) {}

  absl::Status Visit(uint64_t batch, const std::string& group,
                     const report::RowVisitor& visitor) override {
    return report::VisitRows(*reader_, batch, group, visitor);
  }

 private:
  const std::unique_ptr<report::ReportStore> store_;
  const std::unique_ptr<report::ReportReader> reader_;
};

class RemoteReport final : public ReportView {
 public:
  explicit RemoteReport(std::unique_ptr<MeshClient> mesh) : mesh_(std::move(mesh)) {}

  absl::Status Visit(uint64_t batch, const std::string& group,
                     const report::RowVisitor& visitor) override {
    MUSTER_ASSIGN_OR_RETURN(const Peer controller, mesh_->Controller());
    report::remote::ReadRequest request;
    request.batch = batch;
    request.group = group;
    request.timeout = mesh_->options().timeout.value_or(report::remote::kDefaultReportTimeout);
    return Explain(report::remote::ReadReport(controller.channel, request, visitor), controller);
  }

 private:
  const std::unique_ptr<MeshClient> mesh_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ReportView>> OpenReportView(const CommonOptions& options,
                                                           const Environment& environment) {
  if (options.server.named()) {
    MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<MeshClient> mesh, MeshClient::Open(options.server));
    return std::make_unique<RemoteReport>(std::move(mesh));
  }
  MUSTER_RETURN_IF_ERROR(RequireDataDir(options.data_dir));
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<report::ReportStore> store,
                          backend::OpenReportStore(backend::DataDirUrls(options.data_dir).report,
                                                   backend::Mode::kReadOnly, environment.clock));
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<report::ReportReader> reader, store->Read());
  return std::make_unique<LocalReport>(std::move(store), std::move(reader));
}

}  // namespace muster::cli
