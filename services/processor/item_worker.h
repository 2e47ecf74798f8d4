// ItemWorker: what one worker does with one work item: decode → parse → handler → result.
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
#include "muster/job/job.h"
#include "muster/listener/subscriber.h"
#include "muster/queue/queue_store.h"
#include "muster/wire/work_item_codec.h"

namespace muster::processor {

// Batches that something was said about. Thread-safe.
class SaidOnce {
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

// What all workers of a job share; read-only but for counts and notes. Outlives them.
struct WorkerSetup {
  const job::JobDefinition* job = nullptr;  // not owned
  handler::JobSchema schema;
  std::string handler_version;
  std::string instance;              // stands in results as who computed them
  blob::BlobStore* blobs = nullptr;  // not owned
  // Makes handlers that run in a process of their own, for suspects; empty: there is no such thing.
  handler::HandlerFactory isolated;
  // Of items that were processed, this one's attempts included; for progress bars, not for books.
  mutable std::atomic<uint64_t> transactions_processed{0};
  mutable SaidOnce misfits;  // one line in the log for a batch, not for each of its items
};

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
  // Why this worker must leave the item to another, if it must.
  std::optional<std::string> Misfit(const wire::BatchIdentity& identity) const;
  listener::Settlement WorkOn(const wire::WorkItem& item, const Attempt& attempt);
  listener::Settlement RejectOversized(const wire::WorkItem& item, const Attempt& attempt) const;
  listener::Settlement Aggregate(const wire::WorkItem& item, const Attempt& attempt,
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
  absl::Status Parse(const wire::WorkItem& item);

  const WorkerSetup* const setup_;  // not owned
  const std::unique_ptr<handler::Handler> handler_;
  std::unique_ptr<handler::Handler> isolated_;  // once there was a suspect
  // Of the batch that was worked on last; items of one batch come in runs.
  std::vector<int> positions_;
  int header_fields_ = -1;
  std::optional<input::RecordParser> parser_;
  input::ParsedRecords records_;  // reused
};

}  // namespace muster::processor
