// SPDX-License-Identifier: Apache-2.0
#include "muster/item/redrive.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/clock.h"
#include "muster/base/failpoint.h"
#include "muster/base/status.h"
#include "muster/item/work_item_codec.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/queue/limits.h"

namespace muster::item {

namespace {

// What is redriven together.
struct Selection {
  struct OfBatch {
    std::vector<std::string> messages;  // ids
    std::vector<uint64_t> items;
  };
  std::map<uint64_t, OfBatch> batches;
  // Messages that are no work items are redriven, too, without an item to reopen.
  std::vector<std::string> others;
};

void Select(const queue::PoisonMessage& message, Selection* selection) {
  const absl::StatusOr<WorkItem> item = item::DecodeWorkItemHeader(message.body);
  if (!item.ok()) {
    selection->others.push_back(message.message_id);
    return;
  }
  Selection::OfBatch& batch = selection->batches[item->identity.batch];
  batch.messages.push_back(message.message_id);
  batch.items.push_back(item->index);
}

// A batch that no initiator has may have been deleted: what it left must not keep others back.
bool TakesNoItems(const absl::Status& granted) {
  return absl::IsFailedPrecondition(granted) || absl::IsNotFound(granted) ||
         ledger::IsUnknownToAll(granted);
}

// Poison messages that are read at a time where all may have to be: the store reads whole bodies.
constexpr int kPoisonStep = 32;

// Within this time a redrive that waits for its rate sees that it is cancelled.
constexpr absl::Duration kLongestSleep = absl::Milliseconds(200);

class Redriver {
 public:
  Redriver(const RedriveRequest* request, queue::QueueStore* queues, BatchReopener* reopener)
      : request_(*request), queues_(*queues), reopener_(*reopener) {}

  absl::Status RedriveOldest() {
    MUSTER_ASSIGN_OR_RETURN(Unseen unseen, CountUnseen());
    std::string after;
    absl::Duration next = request_.clock->Monotonic();
    while (unseen.all() > 0 && summary_.messages < request_.max) {
      MUSTER_RETURN_IF_ERROR(CheckGoingOn());
      const absl::Duration wait = next - request_.clock->Monotonic();
      if (wait > absl::ZeroDuration()) {
        base::SleepUnlessStopped(request_.clock, std::min(wait, kLongestSleep), {});
        continue;
      }
      const int64_t most = std::min({unseen.all(), request_.max - summary_.messages, PageSize()});
      MUSTER_ASSIGN_OR_RETURN(const auto page, NextPage(after, most));
      if (page.empty()) break;
      MUSTER_CHECK(static_cast<int64_t>(page.size()) <= most, "page ", page.size(), ", at most ",
                   most);
      Selection selection;
      for (const queue::PoisonMessage& message : page) {
        if (unseen.Take(message)) Select(message, &selection);
      }
      MUSTER_RETURN_IF_ERROR(Redrive(selection));
      after = page.back().message_id;
      next = request_.clock->Monotonic() + TimeOf(static_cast<int64_t>(page.size()));
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
  // Why the store refused all messages of a page; OK: it did not.
  const absl::Status& refused() const { return refused_; }

 private:
  // The messages to look at, counted before the redrive: those that become poison meanwhile come
  // behind. Poison of other queues lies among the messages of this one, so that its number is not
  // known; there is no more than that.
  struct Unseen {
    int64_t own = 0;
    int64_t moved = 0;

    int64_t all() const { return own + moved; }
    bool Take(const queue::PoisonMessage& message) {
      int64_t& left = message.origin.name.empty() ? own : moved;
      return left > 0 && left-- > 0;
    }
  };

  absl::StatusOr<Unseen> CountUnseen() {
    MUSTER_ASSIGN_OR_RETURN(const queue::QueueStats stats, queues_.Stats(request_.queue));
    return Unseen{stats.poison, queues_.traits().moves ? stats.stored() : 0};
  }

  // Never more than those of a second.
  int64_t PageSize() const {
    return request_.per_second == 0 ? queue::kMaxListPoison : request_.per_second;
  }
  absl::Duration TimeOf(int64_t messages) const {
    if (request_.per_second == 0) return absl::ZeroDuration();
    return absl::Seconds(static_cast<double>(messages) / static_cast<double>(request_.per_second));
  }

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
    std::vector<queue::PoisonName> names;
    for (const auto& id : std::set<std::string>(request_.messages.begin(), request_.messages.end()))
      names.push_back({.message_id = id});
    std::vector<Selection> selections;
    int64_t selected = 0;
    for (size_t from = 0; from < names.size(); from += queue::kMaxFindPoison) {
      MUSTER_RETURN_IF_ERROR(CheckGoingOn());
      const auto step = absl::MakeConstSpan(names).subspan(from, queue::kMaxFindPoison);
      MUSTER_ASSIGN_OR_RETURN(const auto found, queues_.FindPoison(request_.queue, step));
      for (size_t i = 0; i < step.size(); ++i) {
        if (found[i].has_value()) {
          if (selected++ % queue::kMaxListPoison == 0) selections.emplace_back();
          Select(*found[i], &selections.back());
        } else if (request_.missing == Missing::kRefused) {
          return absl::NotFoundError(absl::StrCat(request_.queue.ToString(),
                                                  " has no poison message ", step[i].message_id));
        }
      }
    }
    return selections;
  }

  // The batches first, then the queue: if it is cut short in between, the items are uncounted items
  // of an open batch.
  absl::Status Redrive(const Selection& selection) {
    std::vector<std::string> messages = selection.others;
    for (const auto& [batch, of_batch] : selection.batches) {
      const absl::StatusOr<RefusedItems> refused = reopener_.Grant(batch, of_batch.items);
      if (TakesNoItems(refused.status())) {
        summary_.kept[batch] = std::string(refused.status().message());
        summary_.kept_messages += static_cast<int64_t>(of_batch.messages.size());
        continue;
      }
      MUSTER_RETURN_IF_ERROR(refused.status());
      TakeGranted(batch, of_batch, *refused, &messages);
    }
    if (messages.empty()) return absl::OkStatus();  // the queue would take no names for the oldest
    const absl::StatusOr<int64_t> moved =
        queues_.Redrive(request_.queue, messages, static_cast<int64_t>(messages.size()));
    if (absl::IsFailedPrecondition(moved.status())) {
      refused_ = moved.status();
      return absl::OkStatus();
    }
    MUSTER_RETURN_IF_ERROR(moved.status());
    summary_.messages += *moved;
    if (*moved > 0) request_.on_redriven(*moved);
    return absl::OkStatus();
  }

  // Adds the messages of all items but those that are refused.
  void TakeGranted(uint64_t batch, const Selection::OfBatch& of_batch, const RefusedItems& refused,
                   std::vector<std::string>* messages) {
    for (size_t i = 0; i < of_batch.messages.size(); ++i) {
      if (refused.contains(of_batch.items[i])) {
        ++summary_.kept_messages;
        continue;
      }
      summary_.batches.insert(batch);
      messages->push_back(of_batch.messages[i]);
    }
    if (refused.empty()) return;
    const size_t more = refused.size() - 1;
    summary_.kept[batch] = absl::StrCat(
        refused.begin()->second,
        more == 0 ? "" : absl::StrCat(", and ", more, " more of its items are retried"));
  }

  const RedriveRequest& request_;
  queue::QueueStore& queues_;
  BatchReopener& reopener_;
  RedriveSummary summary_;
  absl::Status refused_;
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
  RedriveSummary summary = redriver.TakeSummary();
  if (summary.messages > 0) return summary;
  MUSTER_RETURN_IF_ERROR(redriver.refused());
  if (summary.kept.empty()) return summary;
  const size_t more = summary.kept.size() - 1;
  return absl::FailedPreconditionError(absl::StrCat(
      "the poison messages stay (", summary.kept_messages, "): ", summary.kept.begin()->second,
      more == 0 ? "" : absl::StrCat(", and ", more, " more batches")));
}

absl::StatusOr<int64_t> DropPoisonOf(const queue::QueueId& queue, uint64_t batch,
                                     std::set<uint64_t>* items, queue::QueueStore& queues,
                                     absl::Time put_by) {
  int64_t dropped = 0;
  std::string after;
  for (bool done = false; !done && !items->empty();) {
    MUSTER_ASSIGN_OR_RETURN(const auto page, queues.ListPoison(queue, after, kPoisonStep));
    if (page.empty()) break;
    // Oldest first, by put or by end (traits().keeps_ids): what follows was put, or given up,
    // later.
    done = page.back().insertion_time > put_by;
    after = page.back().message_id;
    std::vector<std::string> messages;
    for (const queue::PoisonMessage& message : page) {
      const absl::StatusOr<WorkItem> item = DecodeWorkItemHeader(message.body);
      if (!item.ok() || item->identity.batch != batch || items->erase(item->index) == 0) continue;
      messages.push_back(message.message_id);
    }
    if (messages.empty()) continue;
    MUSTER_ASSIGN_OR_RETURN(const int64_t some, queues.DropPoison(queue, messages));
    dropped += some;
  }
  return dropped;
}

absl::StatusOr<RefusedItems> LedgerBatchReopener::Grant(uint64_t batch,
                                                        absl::Span<const uint64_t> items) {
  MUSTER_CHECK(items.size() <= static_cast<size_t>(queue::kMaxListPoison), "batch ", batch,
               ", items ", items.size());
  // NotFound, before the report is asked.
  MUSTER_RETURN_IF_ERROR(ledger_->Get(batch).status());
  RefusedItems refused;
  const auto retried = report_->RetriedItems(batch, items);
  // An older controller knows of none.
  if (!absl::IsUnimplemented(retried.status())) MUSTER_RETURN_IF_ERROR(retried.status());
  if (retried.ok()) {
    for (const auto& [item, in] : *retried) {
      refused[item] = report::RetriedItemInWords(batch, item, in);
    }
  }
  std::vector<uint64_t> granted;
  std::copy_if(items.begin(), items.end(), std::back_inserter(granted),
               [&](uint64_t item) { return !refused.contains(item); });
  if (granted.empty()) return refused;
  MUSTER_RETURN_IF_ERROR(ledger_->Reopen(batch));
  MUSTER_FAILPOINT("redrive.after_ledger");
  MUSTER_RETURN_IF_ERROR(report_->ReopenDeadLettered(batch, granted));
  MUSTER_FAILPOINT("redrive.after_report");
  // In between, the batch may have completed again with what it had.
  MUSTER_RETURN_IF_ERROR(ledger_->Reopen(batch));
  return refused;
}

}  // namespace muster::item
