// What the workers of a job share.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/base/mutex.h"
#include "muster/blob/blob_store.h"
#include "muster/handler/handler.h"
#include "muster/input/record_parser.h"
#include "muster/item/cancelled_batches.h"
#include "muster/item/work_item_codec.h"
#include "muster/job/job.h"
#include "muster/listener/subscriber.h"
#include "muster/queue/queue_store.h"

namespace muster::processor {

// Batches that something was said about. Thread-safe.
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

// What all workers of a job share; read-only but for counts and notes. Outlives them.
struct WorkerSetup {
  const job::JobDefinition* job = nullptr;  // not owned
  handler::JobSchema schema;
  std::string handler_version;
  std::string instance;              // stands in results as who computed them
  blob::BlobStore* blobs = nullptr;  // not owned
  // Makes handlers that run in a process of their own, for suspects; empty: there is no such thing.
  handler::HandlerFactory isolated;
  // For items that are bound to other revisions of the job; null: they are left to other workers.
  RevisionSource* revisions = nullptr;  // not owned
  // Batches whose items are not worth any work; null: there are none. Not owned.
  item::CancelledBatches* cancelled = nullptr;
  // Of items that were processed, this one's attempts included; for progress bars, not for books.
  mutable std::atomic<uint64_t> transactions_processed{0};
  mutable LoggedBatches misfits;  // one line in the log for a batch, not for each of its items
};

// One revision of a job, and all that it takes to work on its items.
struct Revision {
  job::JobDefinition job;
  WorkerSetup setup;                 // of `job`
  handler::HandlerFactory handlers;  // thread-safe
};

// Finds revisions that batches are bound to, though their job has another one now. Thread-safe.
class RevisionSource {
 public:
  virtual ~RevisionSource() = default;

  // NotFound: nobody knows it, or this program does not have its handler. Others: it cannot be told
  // for now. Shared: workers keep what they work with.
  virtual absl::StatusOr<std::shared_ptr<const Revision>> Find(const std::string& revision) = 0;
};

// ItemWorker: what one worker does with one work item: decode → parse → handler → result.

// One attempt at a message.
struct Attempt {
  int number = 1;
  bool last = false;
  bool suspect = false;  // its last holder died with it
  std::stop_token stop_token;
};

// Not thread-safe: one per dequeue task. It is the listener's Subscriber.
class ItemWorker final : public listener::Subscriber {
 public:
  // `setup` is not owned.
  ItemWorker(const WorkerSetup* setup, std::unique_ptr<handler::Handler> handler);

  void OnMessages(absl::Span<listener::Delivery> deliveries,
                  listener::DeliveryContext& context) override;
  std::vector<queue::NewMessage> OnGivenUp(const queue::Message& message,
                                           const queue::Cause& cause) override;

  // Works on one message. Whatever the message holds, it answers a settlement.
  listener::Settlement Work(const queue::Message& message, const Attempt& attempt);

 private:
  // This worker, or one for the revision that the item's batch is bound to. The error says why
  // there is none.
  absl::StatusOr<ItemWorker*> WorkerFor(const item::BatchIdentity& identity);
  absl::StatusOr<ItemWorker*> OtherWorker(const item::BatchIdentity& identity);
  // Why the item must be left to a worker with another setup, if it must.
  static std::optional<std::string> Misfit(const item::BatchIdentity& identity,
                                           const WorkerSetup& setup);
  // What a dead-lettered item is told to have been worked on with: others may have tried it, too,
  // if its batch is bound to no version.
  std::string VersionThatGivesUp(const item::BatchIdentity& identity);
  bool IsGivenUp(uint64_t batch) const;
  // The item is put back, uncharged; the first of its batch is told of.
  listener::Settlement LeaveToOthers(const item::WorkItem& item, std::string wanted,
                                     std::string why) const;
  // An item that only newer processors can read.
  listener::Settlement LeaveToNewer(const queue::Message& message, const absl::Status& why) const;
  // By `worker`, whom the item fits, until its batch is given up.
  listener::Settlement WorkUnlessGivenUp(ItemWorker& worker, const item::WorkItem& item,
                                         Attempt attempt) const;
  listener::Settlement WorkOnFitting(const item::WorkItem& item, const Attempt& attempt);
  listener::Settlement WorkOn(const item::WorkItem& item, const Attempt& attempt);
  listener::Settlement RejectOversized(const item::WorkItem& item, const Attempt& attempt) const;
  listener::Settlement Aggregate(const item::WorkItem& item, const Attempt& attempt,
                                 const std::vector<handler::GroupPartial>& groups,
                                 const std::vector<handler::Rejection>& rejections) const;
  // The handler for this attempt: a suspect gets the one in a process of its own.
  absl::StatusOr<handler::Handler*> HandlerFor(const Attempt& attempt);
  // Both want the item's records in records_.
  handler::Outcome RunWhole(handler::Handler& handler, const handler::ItemContext& context,
                            handler::Results& results);
  handler::Outcome RunOneByOne(handler::Handler& handler, const handler::ItemContext& context,
                               handler::Results& results);
  // Into records_. DataLoss when the item does not fit its job or its own count.
  absl::Status Parse(const item::WorkItem& item);

  const WorkerSetup* const setup_;  // not owned
  const std::unique_ptr<handler::Handler> handler_;
  std::unique_ptr<handler::Handler> isolated_;  // once there was a suspect
  // For items of another revision, once there was one; of the last such revision. The worker uses
  // the revision.
  std::shared_ptr<const Revision> other_revision_;
  std::unique_ptr<ItemWorker> other_worker_;
  // Of the batch that was worked on last; items of one batch come in runs.
  std::vector<int> positions_;
  int header_fields_ = -1;
  std::optional<input::RecordParser> parser_;
  input::ParsedRecords records_;  // reused
};

}  // namespace muster::processor
