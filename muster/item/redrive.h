// SPDX-License-Identifier: Apache-2.0

// Redriving work items: back from the poison queue into their input queue, with their batches open
// again so that they count.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "muster/base/clock.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/queue/queue_store.h"
#include "muster/report/report_client.h"

namespace muster::item {

// Items that get no other chance, and why.
using RefusedItems = std::map<uint64_t, std::string>;

// Prepares a batch before workers may work on items of it again.
class BatchReopener {
 public:
  virtual ~BatchReopener() = default;

  // Gives items of `batch`, at most queue::kMaxListPoison, another chance, but those that it
  // answers. After OK the others may count again, durably. Granting twice is fine.
  // FailedPrecondition: the batch takes no items any more. NotFound: its ledger is not here.
  virtual absl::StatusOr<RefusedItems> Grant(uint64_t batch, absl::Span<const uint64_t> items) = 0;
};

// What to do about a named message that is not in the poison queue.
enum class Missing {
  kPassedOver,
  kRefused,  // NotFound naming it; nothing was redriven
};

struct RedriveRequest {
  queue::QueueId queue;
  std::vector<std::string> messages;  // ids; empty: the oldest `max`
  int64_t max = INT64_MAX;
  Missing missing = Missing::kPassedOver;
  // Messages a second at most, so that those who work on them keep up; 0: as fast as the store can.
  // Only for the oldest ones.
  int64_t per_second = 0;
  base::Clock* clock = base::RealClock();  // measures per_second; not owned
  // Called between one page of messages and the next; true makes the redrive return Cancelled.
  // Messages that were redriven before stay so.
  std::function<bool()> is_cancelled = [] { return false; };
  // Called after each page with the messages of it that are ready again, if there are any.
  std::function<void(int64_t messages)> on_redriven = [](int64_t) {};
};

struct RedriveSummary {
  int64_t messages = 0;
  std::set<uint64_t> batches;  // open again
  // Messages that stay poison because their batch does not take them, or a retry has their items,
  // and why, by batch.
  int64_t kept_messages = 0;
  std::map<uint64_t, std::string> kept;
};

// Each message is looked at once: one that is given up again meanwhile stays poison. Messages of a
// batch that takes no items any more stay poison, too, and so do those of items that a retry has
// (muster/report/retry.h), and those that the store refuses;
// FailedPrecondition: there were no others. Other statuses are the store's, or those of `reopener`.
// An interruption at any point leaves items that are either still poison, or uncounted items of an
// open batch, which are put again; none is lost, none counts twice.
absl::StatusOr<RedriveSummary> RedriveItems(const RedriveRequest& request,
                                            queue::QueueStore& queues, BatchReopener& reopener);

// Drops the poison messages of these items of a batch, which a retry has, or which cannot be
// redriven any more: nothing is to be done about them. Takes the items whose messages it finds out
// of `items`, and reads the poison of the queue until none is left there, or up to what was put
// after `put_by`: a queue gives a message its id when an item is put, and nothing keeps that id
// with the item, by which FindPoison would find it. Returns how many.
absl::StatusOr<int64_t> DropPoisonOf(const queue::QueueId& queue, uint64_t batch,
                                     std::set<uint64_t>* items, queue::QueueStore& queues,
                                     absl::Time put_by = absl::InfiniteFuture());

// LedgerBatchReopener: gives items another chance in the two records that rule a batch.

// Reopens the batch in the ledger first, then removes the items' rows from the report: if it is cut
// short in between, the batch completes again with what it had. Refuses the items that a retry has,
// and leaves the batch as it is where there are no others.
//
// Thread-safe. Statuses are those of the two. NotFound, without a change: the ledger does not know
// the batch. The report alone may not be changed: the ledger of another initiator would stay
// complete over items that are not counted.
class LedgerBatchReopener final : public BatchReopener {
 public:
  // Neither is owned; both outlive this.
  LedgerBatchReopener(ledger::BatchLedger* ledger, report::ReportClient* report)
      : ledger_(ledger), report_(report) {}

  absl::StatusOr<RefusedItems> Grant(uint64_t batch, absl::Span<const uint64_t> items) override;

 private:
  ledger::BatchLedger* const ledger_;   // not owned
  report::ReportClient* const report_;  // not owned
};

}  // namespace muster::item
