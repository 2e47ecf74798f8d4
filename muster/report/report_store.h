// SPDX-License-Identifier: Apache-2.0

// ReportStore: the interface to the database that people read, and that alone decides what counts.
//
// One transaction per commit: an item counts if and only if its row was not there before. A result
// that is delivered twice, late, or after a crash changes nothing.
//
// Statuses: InvalidArgument (malformed), NotFound (no such batch, group or receipt),
// FailedPrecondition (fenced, or another writer or schema), ResourceExhausted (disk full),
// Unavailable (busy; the outcome is unknown, try again; of a store that was moved aside after it
// was opened, every call says so, and changes nothing), DataLoss (a stored row is corrupt).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "muster/base/decimal.h"
#include "muster/base/output_record.h"
#include "muster/report/counted_item.h"
#include "muster/report/receipt.h"
#include "muster/report/retry.h"

namespace muster::report {

// That a batch was given up.
struct Cancellation {
  absl::Time when;
  std::string reason;      // for people; may be empty
  std::string owner = "";  // of the batch, as BatchShape has it
};

// Where the counting of a batch stands. transactions = aggregated + rejected + dead_lettered.
struct Progress {
  uint64_t batch = 0;
  std::string job;
  std::string job_revision;
  int64_t items_counted = 0;  // aggregated
  int64_t items_dead = 0;     // dead-lettered
  int64_t transactions = 0;
  int64_t aggregated = 0;
  int64_t rejected = 0;
  int64_t dead_lettered = 0;
  int64_t duplicates = 0;  // results dropped because their item had its row
  int64_t conflicts = 0;   // results kept out because they contradict their item's row
  int64_t attempts = 0;    // handler starts of all items
  std::optional<absl::Time> first_counted;
  std::optional<absl::Time> last_counted;
  int64_t receipt_revision = 0;  // 0: no receipt yet
  // What is counted has changed since that receipt, as by a redrive: the batch is complete again
  // when it gets another one.
  bool reopened = false;
  // As RegisterBatch and ReportReader::GetProgress answer them; others leave them out.
  std::optional<Cancellation> cancelled = std::nullopt;
  std::string owner = "";  // that registered the batch; empty: it is not known
  uint64_t retry_of = 0;   // the batch that it retries a part of; 0: none, or it is forgotten
  // The batches that retry what failed of this one: the newest kMaxShownRetries, in order.
  std::vector<uint64_t> retried_in = {};
  // Batches of the same input: in whose place it counts once it is complete, the last one first,
  // and the newest complete one that counts in its place; 0: none.
  std::vector<uint64_t> replaces = {};
  uint64_t replaced_by = 0;

  int64_t items() const { return items_counted + items_dead; }
  // A receipt proves what is counted.
  bool is_complete() const { return receipt_revision > 0 && !reopened; }
};

// Which report this is, and who may write to it.
struct ReportIdentity {
  std::string
      report;  // 16 hexadecimal digits, drawn when the report was made; copies have the same
  uint64_t epoch = 0;  // of the last owner; 0: it had none
  std::string owner;   // its instance name
};

// A controller that writes to a report which others may take over (docs/coordination.md).
struct ReportOwner {
  std::string instance;
  uint64_t epoch = 1;  // of its ownership; a later owner has a higher one
};

struct GroupRow {
  std::vector<std::string> keys;
  std::vector<base::Decimal> measures;  // at the measures' scales
};

struct RejectionRow : Rejection {
  uint64_t item = 0;
  uint64_t retried_in = 0;  // the batch that retries it; 0: none
  // Of a batch that is a retry: the line of the batch that it retries; 0: there is none.
  int64_t retry_of_line = 0;
};

// Where a rejection stands in its batch.
struct RejectionPosition {
  uint64_t item = 0;
  int64_t line = 0;  // 0: before all of the item
};
// Before the claim of item 0 as a whole, too.
inline constexpr RejectionPosition kBeforeAllClaimed = {0, -1};

// Where in a batch's records a page begins: before all of them, unless told otherwise.
struct OutputPosition {
  uint64_t item = 0;
  uint64_t piece = 0;  // a store's own part of the item's records
};

// One consistent view of the store; later commits do not change it. Not thread-safe. Destroy it
// soon: the store cannot clean up behind it.
class ReportReader {
 public:
  virtual ~ReportReader() = default;

  // The highest number of a registered batch; 0: there is none.
  virtual absl::StatusOr<uint64_t> HighestBatch() = 0;
  // The names of all jobs that have a batch, in order. Reads the row of each batch.
  virtual absl::StatusOr<std::vector<std::string>> Jobs() = 0;
  // The numbers of a job's batches, in order. Reads the row of each batch.
  virtual absl::StatusOr<std::vector<uint64_t>> BatchesOf(absl::string_view job) = 0;
  // The names of the jobs of which there is what ForgetJob deletes, in order. Reads the row of each
  // batch.
  virtual absl::StatusOr<std::vector<std::string>> JobsWithoutBatches() = 0;
  // All there are, with their counts, in order of number: for a check.
  virtual absl::StatusOr<std::vector<Progress>> Batches() = 0;
  virtual absl::StatusOr<Progress> GetProgress(uint64_t batch) = 0;
  // In the job's order.
  virtual absl::StatusOr<std::vector<GroupShape>> Groups(uint64_t batch) = 0;

  // The batch's rows of a group, in the byte order of their keys.
  virtual absl::Status ForEachRow(uint64_t batch, absl::string_view group,
                                  const std::function<void(const GroupRow&)>& visit) = 0;
  // In order of index.
  virtual absl::Status ForEachItem(uint64_t batch,
                                   const std::function<void(const ItemRow&)>& visit) = 0;
  // Up to `max` of them, in the order of item and line.
  virtual absl::Status ForEachRejection(uint64_t batch, int64_t offset, int64_t max,
                                        const std::function<void(const RejectionRow&)>& visit) = 0;

  // The same behind a position, which costs nothing however far it is.
  virtual absl::Status ForEachRejectionAfter(
      uint64_t batch, const RejectionPosition& after, int64_t max,
      const std::function<void(const RejectionRow&)>& visit) = 0;

  // Up to `max` of what a claim has, behind a position: rejections, and kWholeItem of items that
  // were given up.
  virtual absl::StatusOr<std::vector<RejectionPosition>> ClaimedRejections(
      uint64_t batch, int64_t retry, const RejectionPosition& after, size_t max) = 0;

  // Indexes below `item_count`, from `from` on, that have no row: what a refill must put again.
  virtual absl::StatusOr<std::vector<uint64_t>> UncountedItems(uint64_t batch, uint64_t item_count,
                                                               uint64_t from, size_t max) = 0;
  // Up to `max` indexes of dead-lettered items, from `from` on, in order.
  virtual absl::StatusOr<std::vector<uint64_t>> DeadLetteredItems(uint64_t batch, uint64_t from,
                                                                  size_t max) = 0;
  // The rows of these items, likewise.
  virtual absl::StatusOr<std::vector<ItemRow>> DeadLetters(uint64_t batch, uint64_t from,
                                                           size_t max) = 0;
  // Those of the items that are claimed for a retry as wholes, and the batch that retries each; 0:
  // it was not told yet.
  virtual absl::StatusOr<std::map<uint64_t, uint64_t>> RetriedItems(
      uint64_t batch, absl::Span<const uint64_t> items) = 0;

  virtual absl::StatusOr<StoredReceipt> GetReceipt(uint64_t batch) = 0;

  // The columns of the batch's records; none: its job has no outputs.
  virtual absl::StatusOr<std::vector<base::OutputColumn>> OutputColumns(uint64_t batch) = 0;
  // The records that are counted, in the order of items and of lines, from `from` on, until they
  // have `max_bytes`, and some beyond that. Returns where to go on; nullopt: there are no more.
  virtual absl::StatusOr<std::optional<OutputPosition>> ReadOutputs(
      uint64_t batch, OutputPosition from, size_t max_bytes,
      const std::function<void(base::OutputRecord)>& visit) = 0;
};

struct CommitRequest {
  std::string partition;  // of the output queue; its owner commits
  uint64_t epoch = 1;     // of that ownership
  std::vector<CountedItem> items;
};

// What a commit did with an item.
enum class Verdict {
  kCounted,       // its rows are in the report
  kDeadLettered,  // counted as given up
  kRefused,       // aggregated, but impossible to add: counted as given up, with that cause
  kDuplicate,     // dropped
  kConflict,      // kept out
};

struct ItemVerdict {
  Verdict verdict = Verdict::kCounted;
  std::string why;  // kRefused, kConflict: one line for people
};

struct CommitSummary {
  std::vector<ItemVerdict> verdicts;  // as CommitRequest::items
  std::vector<Progress> progress;     // of each batch that the commit touched, after it
};

// Bound of one commit, so that a transaction stays short.
inline constexpr size_t kMaxCommitItems = 4096;

// Thread-safe. After OK, a change is fsynced.
class ReportStore {
 public:
  virtual ~ReportStore() = default;

  // The epoch under which this process writes, and so commits. A change is FailedPrecondition once
  // another process has opened the report under a higher one.
  virtual uint64_t epoch() const = 0;

  // Registers a batch and makes room for its job's groups; returns its progress. Registering the
  // same again is fine; FailedPrecondition when the batch is known with another job or revision.
  // AlreadyExists: another owner has registered this number. A batch that was registered without an
  // owner belongs to the first that names itself; a shape without one is taken for the owner's.
  virtual absl::StatusOr<Progress> RegisterBatch(const BatchShape& shape) = 0;

  // Counts the items that were not counted before, in one transaction. Each new item adds its rows
  // to the groups; an item that would overflow a measure, or does not fit, is counted as
  // dead-lettered and the rest still counts. FailedPrecondition: `epoch` is lower than one that
  // committed for this partition before. NotFound: an item's batch is not registered. On error
  // nothing was counted, or (Unavailable) perhaps all of it: committing again is safe.
  virtual absl::StatusOr<CommitSummary> Commit(const CommitRequest& request) = 0;

  // Removes the rows of dead-lettered items, which get another chance: the batch is incomplete
  // (Progress::reopened) until they are counted again. Items that were aggregated, or have no row,
  // stay as they are. NotFound: no such batch. FailedPrecondition naming it: one of the items is
  // claimed for a retry, and none is reopened.
  virtual absl::Status ReopenDeadLettered(uint64_t batch, absl::Span<const uint64_t> items) = 0;

  // Issues the receipt of a batch in which every item has its row. The same answer while nothing
  // has changed; a higher revision after a redrive. FailedPrecondition naming the counts when items
  // or transactions are missing, or when the batch is cancelled.
  virtual absl::StatusOr<Receipt> Complete(const BatchFacts& facts) = 0;

  // Records that a batch is cancelled, also one that is not registered: it never gets a receipt.
  // What is counted of it stays, and results that are on their way are counted. Cancelling twice is
  // fine: the first cancellation stays. FailedPrecondition: the batch has a receipt, also of an
  // earlier state. So a batch has one end: a receipt, or a cancellation. AlreadyExists: the number
  // belongs to another owner.
  virtual absl::Status CancelBatch(uint64_t batch, const Cancellation& cancellation) = 0;

  // Claims what failed of a complete batch for a retry, in one transaction: what is named, or up to
  // `max` transactions of all and the rest of the last item, as far as it is not claimed. Answers
  // the new claim and those that have the others that are named; of all, while there are any, only
  // the claims whose batch was not told. NotFound: no such batch, nothing was rejected at a line,
  // or an item was not given up. FailedPrecondition: the batch has no receipt; nothing is left to
  // claim.
  virtual absl::StatusOr<RetryClaims> ClaimRejections(uint64_t batch, const RetrySelection& which,
                                                      int64_t max) = 0;
  // Records where transactions of a claim stand in the batch that retries them, and frees those
  // that stand nowhere; `retried_in` tells that batch, 0: later. Answers how many the claim still
  // has, of an item all until kWholeItem is recorded; one without any is gone. The same again is
  // fine. NotFound: no such claim, for one of its batches was forgotten. FailedPrecondition:
  // another batch was told.
  virtual absl::StatusOr<int64_t> RecordRetry(uint64_t batch, int64_t retry,
                                              absl::Span<const RetriedTransaction> transactions,
                                              uint64_t retried_in) = 0;

  // Deletes what was counted of a batch, its receipt last, and before it the claims of its
  // rejections and those that name it: up to about `max_rows` rows, in one transaction. True: the
  // report no longer knows the batch. Between the calls readers find a part.
  virtual absl::StatusOr<bool> ForgetBatch(uint64_t batch, int64_t max_rows) = 0;

  // Deletes what the report has of a job beside its batches: the tables of its groups, and the
  // columns of its outputs. Does nothing while it has a batch of the job; the next one that is
  // registered makes them anew.
  virtual absl::Status ForgetJob(const std::string& job) = 0;

  virtual absl::StatusOr<std::unique_ptr<ReportReader>> Read() = 0;
};

// Visiting the rows of a batch, group by group.

struct RowVisitor {
  // A group begins; its rows follow. An error ends the visit with it.
  std::function<absl::Status(const GroupShape&)> on_group;
  std::function<void(const GroupRow&)> on_row;
};

// Visits `group` of a batch, or all groups in the job's order when it is empty. NotFound: no such
// batch, or no such group (the message names the batch's groups); nothing was visited then.
absl::Status VisitRows(ReportReader& reader, uint64_t batch, absl::string_view group,
                       const RowVisitor& visitor);

}  // namespace muster::report
