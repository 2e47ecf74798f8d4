#include "muster/item/redrive.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/failpoint.h"
#include "muster/base/status.h"
#include "muster/item/work_item_codec.h"
#include "muster/queue/limits.h"

namespace muster::item {

namespace {

// What is redriven together: message ids, and the items that they are, by batch.
struct Selection {
  std::vector<std::string> messages;
  std::map<uint64_t, std::vector<uint64_t>> items;
};

void Select(const queue::PoisonMessage& message, Selection* selection) {
  selection->messages.push_back(message.message_id);
  // A message that is no work item is redriven, too, without an item to reopen.
  const absl::StatusOr<WorkItem> item = item::DecodeWorkItemHeader(message.body);
  if (item.ok()) selection->items[item->identity.batch].push_back(item->index);
}

class Redriver {
 public:
  Redriver(const RedriveRequest* request, queue::QueueStore* queues, BatchReopener* reopener)
      : request_(*request), queues_(*queues), reopener_(*reopener) {}

  absl::Status RedriveOldest() {
    // Counted before the redrive: messages that become poison again meanwhile come behind.
    MUSTER_ASSIGN_OR_RETURN(const queue::QueueStats stats, queues_.Stats(request_.queue));
    int64_t left = std::min(request_.max, stats.poison);
    std::string after;
    while (left > 0) {
      MUSTER_RETURN_IF_ERROR(CheckGoingOn());
      MUSTER_ASSIGN_OR_RETURN(const auto page, NextPage(after, left));
      if (page.empty()) break;
      MUSTER_CHECK(static_cast<int64_t>(page.size()) <= left, "page ", page.size(), ", left ",
                   left);
      Selection selection;
      for (const queue::PoisonMessage& message : page) Select(message, &selection);
      MUSTER_RETURN_IF_ERROR(Redrive(selection));
      left -= static_cast<int64_t>(page.size());
      after = page.back().message_id;
    }
    return absl::OkStatus();
  }

  absl::Status RedriveNamed() {
    MUSTER_ASSIGN_OR_RETURN(const std::vector<Selection> selections, FindNamed());
    for (const Selection& selection : selections) {
      MUSTER_RETURN_IF_ERROR(CheckGoingOn());
      MUSTER_RETURN_IF_ERROR(Redrive(selection));
    }
    return absl::OkStatus();
  }

  RedriveSummary TakeSummary() { return std::move(summary_); }

 private:
  absl::Status CheckGoingOn() const {
    return request_.is_cancelled() ? absl::CancelledError("the redrive was called off")
                                   : absl::OkStatus();
  }

  absl::StatusOr<std::vector<queue::PoisonMessage>> NextPage(const std::string& after,
                                                             int64_t left) {
    return queues_.ListPoison(request_.queue, after,
                              static_cast<int>(std::min<int64_t>(left, queue::kMaxListPoison)));
  }

  // Finds all of them before it redrives the first, so that a wrong name changes nothing.
  absl::StatusOr<std::vector<Selection>> FindNamed() {
    absl::flat_hash_set<std::string> wanted(request_.messages.begin(), request_.messages.end());
    std::vector<Selection> selections;
    std::string after;
    while (!wanted.empty()) {
      MUSTER_RETURN_IF_ERROR(CheckGoingOn());
      MUSTER_ASSIGN_OR_RETURN(const auto page, NextPage(after, queue::kMaxListPoison));
      if (page.empty()) break;
      Selection& selection = selections.emplace_back();
      for (const queue::PoisonMessage& message : page) {
        if (wanted.erase(message.message_id) > 0) Select(message, &selection);
      }
      if (selection.messages.empty()) selections.pop_back();
      after = page.back().message_id;
    }
    if (!wanted.empty() && request_.missing == Missing::kRefused) {
      return absl::NotFoundError(absl::StrCat(request_.queue.ToString(), " has no poison message ",
                                              *std::min_element(wanted.begin(), wanted.end())));
    }
    return selections;
  }

  // The batches first, then the queue: if it is cut short in between, the items are uncounted items
  // of an open batch.
  absl::Status Redrive(const Selection& selection) {
    // The queue would take no names for the oldest messages.
    MUSTER_CHECK(!selection.messages.empty(), "items of ", selection.items.size(), " batches");
    for (const auto& [batch, items] : selection.items) {
      MUSTER_RETURN_IF_ERROR(reopener_.Grant(batch, items));
      summary_.batches.insert(batch);
    }
    MUSTER_ASSIGN_OR_RETURN(const int64_t moved,
                            queues_.Redrive(request_.queue, selection.messages,
                                            static_cast<int64_t>(selection.messages.size())));
    summary_.messages += moved;
    return absl::OkStatus();
  }

  const RedriveRequest& request_;
  queue::QueueStore& queues_;
  BatchReopener& reopener_;
  RedriveSummary summary_;
};

}  // namespace

absl::StatusOr<RedriveSummary> RedriveItems(const RedriveRequest& request,
                                            queue::QueueStore& queues, BatchReopener& reopener) {
  Redriver redriver(&request, &queues, &reopener);
  if (request.messages.empty()) {
    MUSTER_RETURN_IF_ERROR(redriver.RedriveOldest());
  } else {
    MUSTER_RETURN_IF_ERROR(redriver.RedriveNamed());
  }
  return redriver.TakeSummary();
}

absl::Status LedgerBatchReopener::Grant(uint64_t batch, absl::Span<const uint64_t> items) {
  MUSTER_CHECK(items.size() <= static_cast<size_t>(queue::kMaxListPoison), "batch ", batch,
               ", items ", items.size());
  const absl::Status reopened = ledger_->Reopen(batch);
  if (!reopened.ok() && !absl::IsNotFound(reopened)) return reopened;
  MUSTER_FAILPOINT("redrive.after_ledger");
  MUSTER_RETURN_IF_ERROR(report_->ReopenDeadLettered(batch, items));
  MUSTER_FAILPOINT("redrive.after_report");
  // In between, the batch may have completed again with what it had.
  const absl::Status again = ledger_->Reopen(batch);
  return absl::IsNotFound(again) ? absl::OkStatus() : again;
}

}  // namespace muster::item
