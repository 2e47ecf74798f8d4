// The process initiator: takes a batch, splits it into work items, and puts those into the
// partitions of the job's input queue (req. 1).
//
//   input ─► Submit ─► slices ─► ledger (fsync) ─► queue (fsync) ─► trigger
//
// The ledger comes first: what it holds can always be put again. Splitting is a pure function of
// the input and the job's limits, so a batch that was cut off goes on exactly where its ledger
// ends.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "muster/base/clock.h"
#include "muster/base/retry.h"
#include "muster/base/trace_context.h"
#include "muster/blob/blob_store.h"
#include "muster/bus/trigger_bus.h"
#include "muster/job/job.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/queue/queue_store.h"
#include "muster/sync/unique_id_generator.h"
#include "services/initiator/batch/source.h"

namespace muster::initiator::batch {

// What an initiator works with. Nothing is owned; all outlives it.
struct Dependencies {
  queue::QueueStore* queues = nullptr;
  bus::TriggerBus* bus = nullptr;
  ledger::BatchLedger* ledger = nullptr;
  sync::UniqueIdGenerator* batch_numbers = nullptr;
  blob::BlobStore* blobs = nullptr;
  base::Clock* clock = nullptr;
};

// One batch in a hundred can be followed through every span, without anybody noticing the effort.
inline constexpr double kDefaultTraceSample = 0.01;

struct Options {
  std::string account;
  std::string instance = "initiator";
  // Items that share one fsync of the ledger and one of the queue. The first run is small, so that
  // workers start soon, and each is twice as large as the one before, so that a slow disk is waited
  // for seldom.
  int first_run_items = 16;
  int run_items = 128;
  // Asked when a run is put, before more is: an error ends Enqueue. May be empty.
  std::function<absl::Status()> before_next_run = nullptr;
  // The share of batches that are sampled of those whose submitter does not say.
  double trace_sample = kDefaultTraceSample;
};

struct SubmitRequest {
  std::string request_id;
  std::string handler_version;
  std::string tenant;
  // A finished batch of another job revision does not stand in the way of a new one. Off when the
  // submitter chose the request id: then it never makes a second batch.
  bool allow_new_revision = false;
  // Makes a new batch whatever was submitted before.
  bool always_new = false;
  std::optional<base::TraceContext> trace = std::nullopt;  // none: the batch begins a trace
};

enum class Start { kNew, kContinued, kDone };

struct Submission {
  ledger::Batch batch;
  Start start = Start::kNew;
};

// How far Enqueue is. Readable from any thread.
struct Progress {
  std::atomic<uint64_t> bytes_read{0};
  std::atomic<uint64_t> transactions_read{0};
  std::atomic<uint64_t> transactions_enqueued{0};
};

// Records `batch`, with its first `items`, under the next number that is free. `on_number`, if any,
// is called with the batch when it has its number, before it is recorded; its error ends this.
absl::Status RecordUnderNewNumber(
    ledger::BatchLedger* ledger, sync::UniqueIdGenerator* numbers, ledger::Batch* batch,
    absl::Span<const ledger::ItemBoundary> items,
    const std::function<absl::Status(ledger::Batch*)>& on_number = {});

// Thread-compatible: one thread works on one batch at a time; progress() is thread-safe.
class BatchEnqueuer {
 public:
  BatchEnqueuer(const job::JobDefinition* job, BatchSource* source, Dependencies dependencies,
                Options options);

  // Makes the job's queues where they are missing, and finds the batch that `request` continues or
  // repeats, or begins a new one. FailedPrecondition:
  // the input is not what that batch was made of, or the batch is bound to another job revision or
  // handler version; the message says which and what to do.
  // Reads the whole input at the most once; Cancelled when `stop` is requested meanwhile.
  absl::StatusOr<Submission> Submit(const SubmitRequest& request, const std::stop_token& stop = {});

  // Splits and puts what of the batch is not enqueued yet, then seals it. NotFound: a queue of the
  // job is not there. Cancelled: `stop` was requested. HasNotArrived (byte_source.h): the source
  // still grows, and what there is of it was put. After either the same call goes on later. Safe to
  // repeat.
  absl::Status Enqueue(uint64_t batch, const std::stop_token& stop);

  // Puts again the items at `indexes`, from the ledger's boundaries and the source: for a batch
  // that is open while the queue holds nothing of it. Counting them is the done-bit's business.
  absl::Status Refill(uint64_t batch, absl::Span<const uint64_t> indexes);

  // Removes the blobs that claim-checked items of a finished batch left behind, but for those of
  // the items in `keep`: a redrive needs them.
  absl::Status DeleteBlobs(uint64_t batch, const absl::flat_hash_set<uint64_t>& keep);

  // Where Enqueue stands; all zero before its first call.
  const Progress& progress() const { return progress_; }

 private:
  struct Run;  // consecutive items on their way into ledger and queue

  Run NewRun(const ledger::Batch& batch) const;
  absl::StatusOr<Submission> Begin(const SubmitRequest& request, const std::stop_token& stop);
  absl::StatusOr<Submission> Continue(const SubmitRequest& request, ledger::Batch batch,
                                      const std::stop_token& stop);
  absl::Status VerifySource(const ledger::Batch& batch, const std::stop_token& stop);
  // Holds every item that is in the ledger against the input.
  absl::Status VerifyItems(const ledger::Batch& batch, const std::stop_token& stop);
  absl::Status PutRecorded(const ledger::Batch& batch, uint64_t first, uint64_t end,
                           const std::stop_token& stop);
  absl::Status SplitRest(const ledger::Batch& batch, const std::stop_token& stop);
  absl::Status Put(const ledger::Batch& batch, Run* run, const std::stop_token& stop);
  absl::Status AddItem(const ledger::Batch& batch, uint64_t index, const ledger::ItemBoundary& item,
                       absl::string_view slice, Run* run);
  void Trigger(const queue::QueueId& queue, int64_t messages);

  const job::JobDefinition* const job_;  // not owned
  BatchSource* const source_;            // not owned
  const Dependencies deps_;
  const Options options_;
  const std::vector<queue::QueueId> partitions_;
  base::RetryPolicy retry_;
  Progress progress_;
};

}  // namespace muster::initiator::batch
