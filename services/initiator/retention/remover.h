// SPDX-License-Identifier: Apache-2.0

// BatchRemover: deletes what is left of batches that are over, as their retention says:
//
//   blobs     those of its large items, but for dead-lettered ones; its engine does it as soon as
//             the batch has ended, and this does it for an engine that died
//   content   the upload, or the content in the batch's record, of which dead letters get copies
//             first; the claim on its request id
//   items     the boundaries of its items, and their blobs: dead-lettered ones cannot be redriven
//             any more, so their poison messages go, too
//   batch     what the report counted, then the records of the ledger
//
// Each step may be repeated, so that one that was cut off is done again. A batch that has not ended
// loses nothing: the ledger refuses each step.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/blob/blob_store.h"
#include "muster/content/content_store.h"
#include "muster/content/ledger_content.h"
#include "muster/item/work_item_codec.h"
#include "muster/ledger/batch_ledger.h"
#include "muster/queue/queue_store.h"
#include "muster/report/report_client.h"

namespace muster::initiator::retention {

// What keeps something of a batch from being removed: the last error, and when the first of those
// in a row came.
struct RemovalProblem {
  absl::Status why;
  absl::Time since;
};

// Thread-safe.
class BatchRemover {
 public:
  // Nothing is owned.
  struct Dependencies {
    ledger::BatchLedger* ledger = nullptr;
    report::ReportClient* report_client = nullptr;
    blob::BlobStore* blobs = nullptr;
    content::ContentStore* content = nullptr;  // null: contents are files of users, who keep them
    base::Clock* clock = nullptr;
    // Releases the claim on a batch's request id; empty: no other initiator asks for request ids.
    std::function<absl::Status(const ledger::Batch&)> release_request = nullptr;
    // Copies the content of a dead-lettered item out of the batch's content, which is about to go,
    // into the blob store; as of ItemContent::KeepForRedrive. Empty: contents are files of users.
    std::function<absl::Status(const ledger::Batch&, uint64_t index)> keep_for_redrive = nullptr;
    // Called before the request id of a batch is free for another one, perhaps again. An error
    // keeps the id, and is tried again as one of release_request; of Delete it is the answer.
    // Empty: there is nothing to settle.
    std::function<absl::Status(const ledger::Batch&)> settle_request = nullptr;
    // Drops the poison messages of these items of a batch; as of DropPoison below. An error keeps
    // the items. Empty: the queues are not at hand.
    std::function<absl::Status(const ledger::Batch&, std::set<uint64_t> items)> drop_poison =
        nullptr;
  };

  explicit BatchRemover(const Dependencies& dependencies) : deps_(dependencies) {}

  // One step each for up to `max` batches of which something is due. Answers for how many there was
  // a step; 0: nothing is due, or what is has failed and is not tried yet. A batch whose step fails
  // is passed over for a minute, and longer after each further failure, up to an hour; where no
  // step succeeds, the first error is the answer. While the store of claims does not answer, the
  // content goes all the same, and one claim is tried with each call; the answer is its error. A
  // claim that cannot be released for another reason is a step that fails.
  absl::StatusOr<size_t> RemoveDue(size_t max) ABSL_LOCKS_EXCLUDED(mu_);

  // Deletes a batch as a whole. NotFound: no such batch. FailedPrecondition: it has not ended.
  absl::Status Delete(uint64_t batch);

  // Deletes the content of a batch that has ended, and releases the claim on its request id, before
  // they are due. May be repeated; after an error both are due all the same.
  absl::Status DeleteContent(uint64_t batch);

  // Of a batch whose removal has failed more than once, since this was made: a first error may be
  // of a store that restarts. A claim that cannot be released counts, too.
  std::optional<RemovalProblem> ProblemOf(uint64_t batch) ABSL_LOCKS_EXCLUDED(mu_);
  // Up to `max` of these batches below `below`, in falling order of number.
  std::vector<uint64_t> Problems(uint64_t below, size_t max) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // `released` is how the last release of a claim ended.
  absl::Status Remove(const ledger::Batch& batch, ledger::Removal what, absl::Status* released);
  absl::Status RemoveContent(const ledger::Batch& batch);
  absl::Status KeepDeadLetters(const ledger::Batch& batch);
  absl::Status SettleRequest(const ledger::Batch& batch) const;
  absl::Status ReleaseRequest(const ledger::Batch& batch);
  absl::Status DeleteUpload(const ledger::Batch& batch);
  absl::Status RemoveItems(const ledger::Batch& batch);
  absl::StatusOr<absl::flat_hash_set<uint64_t>> DeadLettersOf(const ledger::Batch& batch);
  absl::Status RemoveBatch(const ledger::Batch& batch);

  // A batch of which something cannot be removed.
  struct Failing {
    int failures = 0;  // in a row
    // Monotonic; nullopt: only its claim cannot be released, which needs no pause, since one claim
    // is tried with each call.
    std::optional<absl::Duration> again_at;
    RemovalProblem problem;

    bool persists() const { return failures > 1; }
  };

  bool IsPassedOver(uint64_t batch) ABSL_LOCKS_EXCLUDED(mu_);
  // `removed`: how the removal of a part ended; `released`: the release of its claim, if that was
  // tried.
  void Note(uint64_t batch, const absl::Status& removed, const absl::Status& released)
      ABSL_LOCKS_EXCLUDED(mu_);

  const Dependencies deps_;
  base::Mutex mu_;
  // At most kMaxFailing: further ones are tried each time, behind which others wait.
  std::map<uint64_t, Failing> failing_ ABSL_GUARDED_BY(mu_);
  // Batches that stay due because of their claims alone: they must not hide the others.
  std::atomic<size_t> claimed_ = 0;
};

// Copies the content of an item into the blob store. Errors are the ledger's and the content's.
absl::Status KeepForRedrive(ledger::BatchLedger* ledger, content::LedgerContent* content,
                            const ledger::Batch& batch, uint64_t index);

// Drops the poison messages of items of a batch that is over and that nobody can redrive. Those of
// a job with `on_poison: hold` stay: each says why a key is held, until somebody releases it.
// Errors are the queues'; one that is gone is none.
absl::Status DropPoison(queue::QueueStore* queues, const std::string& account,
                        const ledger::Batch& batch, std::set<uint64_t> items);

// Deletes the blobs of the items that a batch which is over no longer needs, and notes it: all of a
// cancelled batch, and of a complete one those of items that are not dead-lettered, which a redrive
// needs. Where the report does not tell which ones these are, for it has lost the batch or is of an
// older muster, the blobs go with the batch's items. May be repeated. Nothing is owned.
absl::Status DeleteNeedlessBlobs(ledger::BatchLedger* ledger, report::ReportClient* report_client,
                                 blob::BlobStore* blobs, const ledger::Batch& batch);

// Whether what the report and the workers have under the batch's number is another initiator's,
// which drew the number, too. One that was cancelled before it registered may not know it yet.
// Errors are the report's. Not owned.
absl::StatusOr<bool> HasAnotherOwner(report::ReportClient* report_client,
                                     const ledger::Batch& batch);

// Deletes the blobs of items of the batch that are longer than `longer_than` bytes, but not those
// of the items in `keep`. Shorter items never travel as a blob.
absl::Status DeleteItemBlobs(ledger::BatchLedger* ledger, blob::BlobStore* blobs,
                             const ledger::Batch& batch, const absl::flat_hash_set<uint64_t>& keep,
                             uint64_t longer_than = item::kInlinePayloadBytes);

}  // namespace muster::initiator::retention
