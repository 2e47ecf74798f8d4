#include "cli/redrive.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/backend/backend.h"
#include "muster/base/failpoint.h"
#include "muster/base/status_macros.h"
#include "muster/queue/limits.h"
#include "muster/wire/work_item_codec.h"

namespace muster::cli {
namespace {

// What is to be redriven: message ids, and the items that they are, by batch.
struct Selection {
  std::vector<std::string> messages;
  std::map<uint64_t, std::vector<uint64_t>> items;
};

void Select(const queue::PoisonMessage& message, Selection* selection) {
  selection->messages.push_back(message.message_id);
  const absl::StatusOr<wire::WorkItem> item = wire::DecodeWorkItemHeader(message.body);
  if (item.ok()) selection->items[item->identity.batch].push_back(item->index);
}

bool IsWanted(const RedriveRequest& request, const queue::PoisonMessage& message) {
  return request.messages.empty() || std::find(request.messages.begin(), request.messages.end(),
                                               message.message_id) != request.messages.end();
}

absl::StatusOr<Selection> SelectPoison(const RedriveRequest& request, queue::QueueStore& queues) {
  Selection selection;
  std::string after;
  while (true) {
    MUSTER_ASSIGN_OR_RETURN(const std::vector<queue::PoisonMessage> page,
                            queues.ListPoison(request.queue, after, queue::kMaxListPoison));
    if (page.empty()) return selection;
    for (const queue::PoisonMessage& message : page) {
      if (static_cast<int64_t>(selection.messages.size()) >= request.max) return selection;
      if (IsWanted(request, message)) Select(message, &selection);
    }
    after = page.back().message_id;
  }
}

absl::StatusOr<int64_t> RedriveMessages(const queue::QueueId& queue,
                                        const std::vector<std::string>& messages,
                                        queue::QueueStore& queues) {
  int64_t redriven = 0;
  for (size_t first = 0; first < messages.size(); first += queue::kMaxSettle) {
    const size_t count = std::min<size_t>(queue::kMaxSettle, messages.size() - first);
    MUSTER_ASSIGN_OR_RETURN(
        const int64_t moved,
        queues.Redrive(queue, absl::MakeConstSpan(messages).subspan(first, count),
                       static_cast<int64_t>(count)));
    redriven += moved;
  }
  return redriven;
}

}  // namespace

absl::StatusOr<RedriveSummary> RedriveItems(const RedriveRequest& request, base::Clock* clock) {
  const backend::DataDirUrls urls(request.data_dir);
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
  MUSTER_ASSIGN_OR_RETURN(const Selection selection, SelectPoison(request, *queues));
  for (const std::string& wanted : request.messages) {
    if (std::find(selection.messages.begin(), selection.messages.end(), wanted) ==
        selection.messages.end()) {
      return absl::NotFoundError(
          absl::StrCat(request.queue.ToString(), " has no poison message ", wanted));
    }
  }
  RedriveSummary summary;
  // First the ledger, then the report, then the queue: cut short at any point, the batch is open,
  // and its next run puts again what is uncounted.
  for (const auto& [batch, items] : selection.items) {
    const absl::Status reopened = ledger->Reopen(batch);
    if (!reopened.ok() && !absl::IsNotFound(reopened)) return reopened;
    MUSTER_FAILPOINT("redrive.after_ledger");
    MUSTER_RETURN_IF_ERROR(report->ReopenDeadLettered(batch, items));
    MUSTER_FAILPOINT("redrive.after_report");
    summary.batches.insert(batch);
  }
  MUSTER_ASSIGN_OR_RETURN(summary.messages,
                          RedriveMessages(request.queue, selection.messages, *queues));
  return summary;
}

}  // namespace muster::cli
