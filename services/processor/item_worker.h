// WorkerSetup and Revision: what the workers of a job share. ItemWorker: what one worker does with
// one work item.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/blob/blob_store.h"
#include "muster/content/item_content.h"
#include "muster/handler/handler.h"
#include "muster/handler/health.h"
#include "muster/input/record_parser.h"
#include "muster/item/cancelled_batches.h"
#include "muster/item/suspended_batches.h"
#include "muster/item/work_item_codec.h"
#include "muster/job/job.h"
#include "muster/listener/subscriber.h"
#include "muster/queue/queue_store.h"
#include "muster/telemetry/span.h"
#include "services/processor/absent_content.h"
#include "services/processor/pool_metrics.h"
#include "services/processor/result_codec.h"
#include "services/processor/slow_items.h"
#include "services/processor/work_spans.h"

namespace muster::processor {

// Batches that a log line has named already. Thread-safe.
class LoggedBatches {
 public:
  // True for the first call with `batch`.
  bool Insert(uint64_t batch) {
    base::MutexLock lock(&mu_);
    return batches_.insert(batch).second;
  }

 private:
  base::Mutex mu_;
  std::set<uint64_t> batches_ ABSL_GUARDED_BY(mu_);
};

class RevisionSource;

// What all workers of a job share. Workers change only its counters and logged batches. Outlives
// them.
struct WorkerSetup {
  const job::JobDefinition* job = nullptr;  // not owned
  handler::JobSchema schema;
  std::string handler_version;
  std::string instance;              // the name that results carry as their worker
  blob::BlobStore* blobs = nullptr;  // not owned
  // Where the content of items is that travels by reference; null: other workers take those items.
  content::ItemContent* content = nullptr;  // not owned
  AbsentContent* absent = nullptr;          // not owned; set with `content`
  // Makes handlers that run in a process of their own, for suspects; empty: suspects run like other
  // items.
  handler::HandlerFactory isolated;
  // Finds other revisions of the job, for items that are bound to them; null: other workers take
  // those items.
  RevisionSource* revisions = nullptr;  // not owned
  // Cancelled batches, whose items the workers drop; null: there are none. Not owned.
  item::CancelledBatches* cancelled = nullptr;
  // Suspended batches, whose items the workers drop if they do not fit; null: they give them back.
  // Not owned.
  item::SuspendedBatches* suspended = nullptr;
  // As of Dependencies.
  std::function<absl::StatusOr<bool>(uint64_t batch)> is_over;
  // Transactions of processed items, counted at each attempt: for progress bars, not for
  // accounting.
  mutable std::atomic<uint64_t> transactions_processed{0};
  // In which workers have made their handlers, since they began.
  mutable std::atomic<int64_t> starting_nanoseconds{0};
  mutable LoggedBatches misfits;           // one log line for a batch, not one for each item
  base::Clock* clock = base::RealClock();  // not owned
  // Warns of calls of the handler that take long; null: no warning is given. Not owned.
  SlowItems* slow_items = nullptr;
  std::shared_ptr<handler::HealthIssues> health;  // of the job; gets those warnings, too
  ItemMetrics metrics;
  telemetry::SpanSink* spans = nullptr;  // null: batches are not traced. Not owned.
};

// One revision of a job, with all that a worker needs for its items.
struct Revision {
  job::JobDefinition job;
  WorkerSetup setup;                 // of `job`
  handler::HandlerFactory handlers;  // thread-safe
};

// Finds the revisions that batches are bound to, also after their job has changed. Thread-safe.
class RevisionSource {
 public:
  virtual ~RevisionSource() = default;

  // NotFound: the registry does not know the revision, or this program lacks its handler. Other
  // errors: unknown for now; ask again. The result is shared because workers keep the revision
  // while they use it.
  virtual absl::StatusOr<std::shared_ptr<const Revision>> Find(const std::string& revision) = 0;
};

// ItemWorker: what one worker does with one work item: decode → content → parse → handler → result.

// One attempt at a message.
struct Attempt {
  int number = 1;
  bool last = false;
  bool suspect = false;  // the worker of the attempt before died with it
  std::stop_token stop_token;
  absl::Time put = absl::InfinitePast();  // when the message was put; else: not known
  const queue::QueueId* queue = nullptr;  // where it came from; null: it is not traced. Not owned.
};

// Not thread-safe: one per dequeue task. It is the listener's Subscriber.
class ItemWorker final : public listener::Subscriber {
 public:
  // `setup` is not owned.
  ItemWorker(const WorkerSetup* setup, std::unique_ptr<handler::Handler> handler)
      : setup_(setup),
        spans_(setup->spans, setup->clock),
        times_(&setup->metrics),
        handler_(std::move(handler)) {}

  void OnMessages(absl::Span<listener::Delivery> deliveries,
                  listener::DeliveryContext& context) override;
  std::vector<queue::NewMessage> OnGivenUp(const queue::Message& message,
                                           const queue::Cause& cause) override;

  // Works on one message. Answers a settlement for any content, also for a message that is no work
  // item.
  listener::Settlement Work(const queue::Message& message, const Attempt& attempt);

 private:
  // Settles the deliveries that do not fit, as far as that shows without work on them, so that they
  // cost no attempt, which an engine may have to store. Returns, for each, whether it did.
  std::vector<bool> LeaveMisfits(absl::Span<const listener::Delivery> deliveries,
                                 listener::DeliveryContext& context);
  // As Misfit; nullopt also where another revision of the job is to be asked for first.
  std::optional<std::string> KnownMisfit(const item::BatchIdentity& identity) const;
  // As Work, once the message is decoded.
  listener::Settlement WorkOnItem(const queue::Message& message, const Attempt& attempt,
                                  item::WorkItem* item);
  // Answers this worker, or one for the revision that the item's batch is bound to. The error says
  // why there is none.
  absl::StatusOr<ItemWorker*> WorkerFor(const item::BatchIdentity& identity);
  absl::StatusOr<ItemWorker*> OtherWorker(const item::BatchIdentity& identity);
  // The reason why only a worker with another setup can take the item; nullopt: this one can.
  static std::optional<std::string> Misfit(const item::BatchIdentity& identity,
                                           const WorkerSetup& setup);
  // The handler version that the result of a dead-lettered item names. If the batch is bound to no
  // version, workers with other versions may have tried the item, too.
  std::string VersionThatGivesUp(const item::BatchIdentity& identity);
  bool IsCancelled(uint64_t batch) const;
  bool IsSuspended(uint64_t batch) const;
  // Drops an item that does not fit if its batch is suspended, or else leaves it to others.
  listener::Settlement LeaveMisfit(const item::WorkItem& item, std::string why) const;
  // Puts the item back without counting the attempt; logs the first such item of each batch.
  listener::Settlement LeaveToOthers(const item::WorkItem& item, std::string wanted,
                                     std::string why) const;
  // Puts back an item that only newer processors can read.
  listener::Settlement LeaveToNewer(const queue::Message& message, const absl::Status& why) const;
  // Gives up an item that cannot be read, unless its batch is over: what has ended loses its blobs,
  // and a copy that comes later is of no use.
  listener::Settlement GiveUpUnlessOver(const queue::Message& message,
                                        const absl::Status& why) const;
  // Lets the content know which items come next.
  void ExpectContent(absl::Span<const listener::Delivery> deliveries) const;
  // Reads the item's slice, which travels by reference. nullopt: it is there.
  std::optional<listener::Settlement> ReadContent(const queue::Message& message,
                                                  item::WorkItem* item);
  // Has `worker`, which fits the item, work on it; stops when the batch is cancelled.
  listener::Settlement WorkUnlessCancelled(ItemWorker& worker, const item::WorkItem& item,
                                           Attempt attempt) const;
  listener::Settlement WorkOnFitting(const item::WorkItem& item, const Attempt& attempt);
  listener::Settlement WorkOn(const item::WorkItem& item, const Attempt& attempt);
  listener::Settlement RejectOversized(const item::WorkItem& item, const Attempt& attempt) const;
  listener::Settlement Aggregate(const item::WorkItem& item, const Attempt& attempt,
                                 ItemContribution contribution) const;
  // The handler for this attempt: a suspect gets the handler that runs in a process of its own.
  absl::StatusOr<handler::Handler*> HandlerFor(const Attempt& attempt);
  // Calls the handler and measures that; if it takes long, the log and the health issues tell of
  // it.
  handler::Outcome Call(handler::Handler& handler, handler::ItemContext context,
                        std::vector<handler::Transaction> transactions, handler::Results& results);
  // Both need the item's records in records_.
  handler::Outcome RunWhole(handler::Handler& handler, const handler::ItemContext& context,
                            handler::Results& results);
  handler::Outcome RunOneByOne(handler::Handler& handler, const handler::ItemContext& context,
                               handler::Results& results);
  // Parses into records_. DataLoss: the item does not fit its job or its own transaction count.
  absl::Status Parse(const item::WorkItem& item);

  const WorkerSetup* const setup_;  // not owned
  WorkSpans spans_;
  HandlerTimes times_;
  const std::unique_ptr<handler::Handler> handler_;
  std::unique_ptr<handler::Handler> isolated_;  // once there was a suspect
  // The latest other revision that an item was bound to, and its worker, which uses it; null: none
  // was.
  std::shared_ptr<const Revision> other_revision_;
  std::unique_ptr<ItemWorker> other_worker_;
  // Cached for the latest batch, because items of one batch come in runs.
  std::vector<int> positions_;
  int header_fields_ = -1;
  std::optional<input::RecordParser> parser_;
  input::ParsedRecords records_;  // reused
  std::string slice_;             // space for the content of items; reused
  bool sees_misfits_ = false;     // some of the last deliveries did not fit
};

}  // namespace muster::processor
