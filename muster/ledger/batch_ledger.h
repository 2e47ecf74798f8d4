// SPDX-License-Identifier: Apache-2.0

// BatchLedger: the interface of the record that rules a batch. The queue is disposable, the ledger
// is not: from a batch's ledger and its source, every work item can be made again, byte for byte.
//
//   Create ──► open ──Append*──► open ──Seal──► sealed ──MarkComplete──► complete
//      └──────────── with all items ──────────────►┘
//               │                                │ ▲                        │
//               └──────────── Cancel ────────────┤ └──────── Reopen ────────┘   (after a redrive)
//                                                ▼
//                                            cancelled
//
// A batch is bound to one job revision, one handler version and one source. It may be created while
// it is still undecided whether its initiator may have it; then NoteDecided follows, or Withdraw.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "muster/base/fingerprint.h"
#include "muster/base/multiline_records.h"
#include "muster/base/output_record.h"
#include "muster/base/trace_context.h"
#include "muster/ledger/retention.h"

namespace muster::ledger {

enum class BatchState { kOpen, kSealed, kComplete, kCancelled };

absl::string_view BatchStateName(BatchState state);

// The content of an upload, as its submitter sealed it.
struct SealedContent {
  uint64_t size = 0;  // bytes
  base::Fingerprint128 hash;

  friend bool operator==(const SealedContent&, const SealedContent&) = default;
};

// How far a batch reaches into one partition of its job's input queue (queue/queue_store.h,
// QueueExtent): all its puts have positions below `end`, in `incarnation`. A mark of an older
// incarnation says that the batch's items there are lost.
struct PutMark {
  std::string incarnation;  // empty: the batch put nothing into the partition
  uint64_t end = 0;

  friend bool operator==(const PutMark&, const PutMark&) = default;
};

// One submission of transactions to a job. Create fixes the first block, except for the content and
// the claim, which the ledger drops some time after the batch is over. The second block grows. The
// third holds the fields that a newer muster has added to the stored forms, as bytes that are
// passed on.
struct Batch {
  uint64_t number = 0;     // unique and short; from the id generator
  std::string request_id;  // the submitter's idempotency key
  std::string job;
  std::string job_revision;
  std::string job_definition;   // the job file as it was submitted
  std::string handler_version;  // that the batch is bound to; empty: to none
  std::string tenant;
  std::string source_path;   // absolute, when the batch began
  std::string content_path;  // of an upload, within the data directory; empty: source_path says it
  base::Fingerprint128 source_header;                  // of the bytes before the first record
  uint64_t source_size = 0;                            // bytes, when the batch began
  std::optional<base::Fingerprint128> source_content;  // of all; none: too long to read twice
  std::string content;                                 // the whole source, if it has no file; short
  bool request_claimed = false;  // in the mesh's sync store, until the claim is released
  absl::Time created;
  std::optional<absl::Duration> sla;
  std::optional<base::TraceContext> trace;  // none: an older muster began the batch
  std::optional<Retention> retention;       // none: an older muster began the batch
  // The data directory of the initiator that has the batch (its file initiator-id); empty: there is
  // only one initiator, or an older muster began the batch.
  std::string owner;
  std::map<std::string, std::string> labels;  // by name (item/labels.h); what its submitter chose
  // The earlier batches of the same input in whose place it counts, the last one first.
  std::vector<uint64_t> replaces;

  BatchState state = BatchState::kOpen;
  uint64_t source_bytes = 0;            // split so far; all of the source once sealed
  uint64_t items = 0;                   // recorded so far; final once sealed
  uint64_t transactions = 0;            // likewise
  base::MultilineRecords multiline;     // of these transactions; older musters count none
  uint64_t enqueued_items = 0;          // items below this index were put and acknowledged
  uint32_t refills = 0;                 // times that missing items were put again
  std::vector<PutMark> put_marks;       // by partition; empty: not known
  std::optional<absl::Time> completed;  // or cancelled
  std::string cancel_reason;            // for people; may be empty
  bool content_deleted = false;         // of a batch that is over; likewise
  bool items_deleted = false;
  bool disowned = false;       // of a cancelled batch: its number is another initiator's
  bool blobs_deleted = false;  // but for those of dead-lettered items, which go with the items
  // Of an open batch: no caller was told of it, and no item of it was put, until NoteDecided.
  bool undecided = false;
  bool upload_expired = false;  // of a cancelled batch: its submitter left, and did not come back
  // None: not an upload, or not sealed yet, or sealed by an older muster.
  std::optional<SealedContent> sealed_content;

  std::string unknown_of_record;
  std::string unknown_of_progress;
};

// Whether the batch has ended: only a redrive can change it any more.
bool IsOver(BatchState state);

// How long the batch is kept after its end: as its retention says, and one whose upload expired no
// longer than its content. Nothing was counted of it for good.
Retention RetentionOf(const Batch& batch);

// What is taken away of a batch that is over, one after the other: its blobs at once, the rest as
// its retention says. The claim on the batch's request id goes with the content.
enum class Removal { kBlobs, kContent, kItems, kBatch };

// The batch's engine deletes the blobs as soon as the batch has ended. The search for removals that
// are due leaves the engine this much time, and finds the blobs that an engine that died has left.
inline constexpr absl::Duration kBlobsGrace = absl::Minutes(1);

// Of a batch that is over.
struct NextRemoval {
  explicit NextRemoval(const Batch& batch);

  Removal what;
  absl::Time at;
};

// Where the window of an item begins (input/key_groups.h): grouping it again gives the item again.
struct ItemWindow {
  uint64_t offset = 0;
  int64_t line = 1;

  friend bool operator==(const ItemWindow&, const ItemWindow&) = default;
};

// The position of an item in its source.
struct ItemBoundary {
  uint64_t offset = 0;
  uint64_t length = 0;
  int64_t first_line = 1;
  uint32_t transactions = 0;
  base::Fingerprint128 content;  // of the slice
  bool oversized = false;        // one record longer than a record may be
  // Of a job with order_by, whose items hold records of one key each: `offset` is then that in the
  // source as if it had been written in the order of the items.
  std::optional<ItemWindow> window = std::nullopt;
  // Of a new item, or of all items of its window where it is the first: Create and Append add it to
  // the batch's. Not stored with the item.
  base::MultilineRecords multiline = {};
};

struct BatchPage {
  std::vector<Batch> batches;  // the newest first; each without its content and job definition
  uint64_t next_below = 0;     // where the next page begins; 0: this was the last
};

// The Unavailable of a remote ledger when each of the initiators that it knows, `asked` of them,
// has answered that it does not have the batch. One that is away may have it.
absl::Status UnknownToAll(uint64_t batch, size_t asked);
bool IsUnknownToAll(const absl::Status& status);

// A batch with its first items.
struct BatchView {
  Batch batch;
  std::vector<ItemBoundary> items;
  bool wants_outcome = false;  // callers wait for what becomes of its records
};

// What became of the records of a complete batch without dead-lettered items.
struct BatchOutcome {
  struct Rejection {
    int64_t line = 0;  // 1-based physical line of the input
    std::string reason;
  };
  std::vector<base::OutputRecord> records;  // in the order of the input
  std::vector<Rejection> rejections;
};

// The part of a ledger that a counter of results needs, perhaps in another process than the
// ledger's (ledger/remote). Statuses are the ledger's; a remote ledger adds Unavailable.
//
// Thread-safe.
class BatchRecords {
 public:
  virtual ~BatchRecords() = default;

  virtual absl::StatusOr<Batch> Get(uint64_t batch) = 0;

  // Boundaries of up to `max_items` items from `first_index` on, in order.
  virtual absl::StatusOr<std::vector<ItemBoundary>> Items(uint64_t batch, uint64_t first_index,
                                                          size_t max_items) = 0;

  // Get, and up to `max_items` Items from the first on, at once; a ledger elsewhere may answer
  // fewer.
  virtual absl::StatusOr<BatchView> View(uint64_t batch, size_t max_items);

  // FailedPrecondition unless the batch is sealed or complete.
  virtual absl::Status MarkComplete(uint64_t batch, absl::Time when) = 0;

  // The same, and tells those who wait for it what became of the batch's records, if the ledger
  // knows any.
  virtual absl::Status MarkCompleteAndTell(uint64_t batch, absl::Time when,
                                           const BatchOutcome& /*outcome*/) {
    return MarkComplete(batch, when);
  }
};

// Whether the batch has ended, or was deleted since: nothing needs its items.
absl::StatusOr<bool> IsOver(BatchRecords& records, uint64_t batch);

// Thread-safe. After OK, a change is fsynced unless its comment says otherwise. NotFound: no such
// batch. DataLoss: a record is corrupt; the message names it.
class BatchLedger : public BatchRecords {
 public:
  // Records a new batch in state open, and, as Append does, its first items, which may be none; or
  // in state sealed, with all of its items, unless it is undecided. All or nothing. AlreadyExists:
  // the number is taken. InvalidArgument: the ledger needs the request id, which begins with a NUL,
  // for itself.
  virtual absl::Status Create(const Batch& batch, absl::Span<const ItemBoundary> items) = 0;
  absl::Status Create(const Batch& batch) { return Create(batch, {}); }

  // The undecided batch stays: it may be acknowledged, and its items may be put. Not fsynced: to
  // decide it again is harmless. Fine for a batch that is decided.
  virtual absl::Status NoteDecided(uint64_t batch) = 0;

  // Deletes all records of an undecided batch. FailedPrecondition: it is decided. Not fsynced: a
  // batch that comes back is undecided.
  virtual absl::Status Withdraw(uint64_t batch) = 0;

  // Records the next items of an open batch; `first_index` must equal Batch::items, else
  // FailedPrecondition: another writer is at work. Adds to items, transactions and source_bytes.
  virtual absl::Status Append(uint64_t batch, uint64_t first_index,
                              absl::Span<const ItemBoundary> items) = 0;

  // Records what the submitter of an upload sealed: from now on no other content may be split for
  // the batch. The same again is fine. AlreadyExists: other content was recorded.
  virtual absl::Status RecordSealedContent(uint64_t batch, const SealedContent& content) = 0;

  // Declares that no items follow; `source_bytes` is the size of the whole source. Sealing twice is
  // fine.
  virtual absl::Status Seal(uint64_t batch, uint64_t source_bytes) = 0;

  // Notes that items below `index` are durably in the input queue, and replaces the marks of the
  // batch's puts; no `marks`: they stay. Not fsynced: repeating a put is harmless.
  virtual absl::Status MarkEnqueued(uint64_t batch, uint64_t index,
                                    absl::Span<const PutMark> marks) = 0;

  // Counts one more refill and returns its ordinal.
  virtual absl::StatusOr<uint32_t> BeginRefill(uint64_t batch) = 0;

  // complete → sealed: workers work on items of the batch again. Fine for an open or sealed batch.
  // It is no longer known how far the batch reaches into the queue: a redrive may put its items
  // behind all others. FailedPrecondition: the batch is cancelled, or its items were deleted.
  virtual absl::Status Reopen(uint64_t batch) = 0;

  // Gives up an open batch, for a `reason` in UTF-8. An open batch cannot have a receipt.
  // Cancelling twice is fine: the first reason stays. FailedPrecondition: the batch is sealed or
  // complete.
  virtual absl::Status CancelIfOpen(uint64_t batch, absl::Time when, const std::string& reason) = 0;

  // As CancelIfOpen, because its upload has expired. FailedPrecondition: its content was sealed.
  virtual absl::Status ExpireUpload(uint64_t batch, absl::Time when, const std::string& reason) = 0;

  // As CancelIfOpen, of a sealed batch, too, for which the report must have recorded the
  // cancellation first (ReportStore::CancelBatch): the report may have issued its receipt.
  // FailedPrecondition: the batch is complete.
  virtual absl::Status Cancel(uint64_t batch, absl::Time when, const std::string& reason) = 0;

  // Cancels an open or sealed batch because the batch of its number is another initiator's: what
  // the number means elsewhere, as in the report, is not this batch. FailedPrecondition: it is
  // complete.
  virtual absl::Status Disown(uint64_t batch, absl::Time when, const std::string& reason) = 0;

  // After OK, everything that was read before the call is durable. A change can be read before it
  // is durable, even if it never becomes so: call Sync before confirming a change that another
  // caller made.
  virtual absl::Status Sync() = 0;

  // Up to `max` of the batches of which something is to be removed by `now`, the longest due first.
  // One that cannot be read for now may be among them: Get says why. Costs what is due, however
  // many other batches the ledger has.
  virtual absl::StatusOr<std::vector<uint64_t>> ListDue(absl::Time now, size_t max) = 0;

  // Drops the content of a batch that is complete or cancelled, and notes that it is deleted;
  // FailedPrecondition otherwise, also for a batch whose content is stored elsewhere. Not fsynced:
  // dropping it again is harmless.
  virtual absl::Status DropContent(uint64_t batch) = 0;

  // Notes that the blobs of a batch that ended at `ended` are deleted. A batch that was opened
  // again since then, also if it has ended again, has blobs to delete: nothing is noted. Not
  // fsynced: deleting them again is harmless.
  virtual absl::Status NoteBlobsDeleted(uint64_t batch, absl::Time ended) = 0;

  // Notes that the claim on the batch's request id is released. Not fsynced: releasing it again is
  // harmless.
  virtual absl::Status NoteRequestReleased(uint64_t batch) = 0;

  // Ends a batch that is over for good, so that its items can be dropped: Reopen is refused from
  // now on. Drops the content, too.
  virtual absl::Status BeginToDropItems(uint64_t batch) = 0;

  // Deletes the boundaries of all items. FailedPrecondition: before BeginToDropItems. Not fsynced:
  // dropping them again is harmless.
  virtual absl::Status DropItems(uint64_t batch) = 0;

  // Deletes all records of a batch. FailedPrecondition: before BeginToDropItems. Not fsynced:
  // deleting it again is harmless.
  virtual absl::Status Delete(uint64_t batch) = 0;

  // The newest batch with this request id of the tenant; NotFound when there is none. Tenants
  // choose their request ids without regard to each other.
  virtual absl::StatusOr<Batch> FindByRequest(absl::string_view tenant,
                                              absl::string_view request_id) = 0;
  // The newest batch with this request id, of any tenant; NotFound also once that one is deleted.
  virtual absl::StatusOr<Batch> FindByRequestId(absl::string_view request_id) = 0;

  // The newest batch of the job; NotFound when there is none. Passes over batches whose records are
  // damaged. Costs the same however many batches there are, but for the first call on a ledger that
  // an older muster has written to: it reads all of them once, and holds up no writer.
  virtual absl::StatusOr<Batch> FindNewestOfJob(absl::string_view job) = 0;

  // A page of the batches with numbers below `below`: up to `max` of them, at least 1. A batch
  // whose record is corrupt is logged as an error, with its number, and left out, so that it does
  // not hide the others; Get says what is wrong with it. Reads the page alone, and holds up no
  // writer.
  virtual absl::StatusOr<BatchPage> ListBelow(uint64_t below, size_t max) = 0;

  // Numbers of the batches that are open or sealed, in order. Costs what these are, however many
  // others the ledger has.
  virtual absl::StatusOr<std::vector<uint64_t>> ListOpen() = 0;
  // The lowest of these numbers from `from` on that a batch of the job has; 0: there is none.
  virtual absl::StatusOr<uint64_t> NextOpenOfJob(absl::string_view job, uint64_t from) = 0;

  // The highest number that a batch has, or had before it was deleted; 0: there was none.
  virtual absl::StatusOr<uint64_t> HighestNumber() = 0;
};

}  // namespace muster::ledger
