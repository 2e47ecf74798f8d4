#include "cli/queue/redrive.h"

#include "muster/backend/backend.h"
#include "muster/base/status_macros.h"
#include "muster/item/batch_reopener.h"
#include "muster/report/store_desk.h"

namespace muster::cli {

absl::StatusOr<item::RedriveSummary> RedriveLocally(const std::string& data_dir,
                                                    const item::RedriveRequest& request,
                                                    base::Clock* clock) {
  const backend::DataDirUrls urls(data_dir);
  // Nothing is created where nothing is.
  MUSTER_RETURN_IF_ERROR(backend::OpenQueueStore(urls.queue, backend::Mode::kReadOnly,
                                                 backend::Holders::kElsewhere, clock)
                             .status());
  MUSTER_ASSIGN_OR_RETURN(const auto queues,
                          backend::OpenQueueStore(urls.queue, backend::Mode::kReadWrite,
                                                  backend::Holders::kInProcess, clock));
  MUSTER_ASSIGN_OR_RETURN(const auto ledger,
                          backend::OpenBatchLedger(urls.ledger, backend::Mode::kReadWrite));
  MUSTER_ASSIGN_OR_RETURN(const auto report,
                          backend::OpenReportStore(urls.report, backend::Mode::kReadWrite, clock));
  // Nobody counts here: the next run looks whether the batch is complete.
  report::LocalReportClient desk(report.get(), [](uint64_t) {});
  item::LedgerBatchReopener reopener(ledger.get(), &desk);
  return item::RedriveItems(request, *queues, reopener);
}

}  // namespace muster::cli
