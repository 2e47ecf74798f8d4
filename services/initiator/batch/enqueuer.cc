// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/batch/enqueuer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/failpoint.h"
#include "muster/base/fingerprint.h"
#include "muster/base/log.h"
#include "muster/base/status.h"
#include "muster/item/queue_names.h"
#include "muster/item/work_item_codec.h"
#include "muster/telemetry/catalogue.h"
#include "services/initiator/batch/batch_spans.h"

namespace muster::initiator::batch {
namespace {

using ledger::Batch;
using ledger::BatchState;
using ledger::ItemBoundary;

}  // namespace

BatchEnqueuer::BatchEnqueuer(const job::JobDefinition* job, BatchSource* source,
                             Dependencies dependencies, Options options)
    : job_(job),
      source_(source),
      deps_(dependencies),
      options_(std::move(options)),
      partitions_(item::InputQueues(options_.account, job->name, job->queue.partitions)),
      retry_(base::RetryOptions(), dependencies.clock) {
  MUSTER_CHECK(!partitions_.empty(), "job ", job->name, ", partitions ", job->queue.partitions);
  MUSTER_CHECK(options_.first_run_items > 0 && options_.run_items > 0, "items of the first run ",
               options_.first_run_items, ", of a run ", options_.run_items);
}

absl::Status BatchEnqueuer::Enqueue(uint64_t number, const std::stop_token& stop) {
  MUSTER_ASSIGN_OR_RETURN(const Batch batch, deps_.ledger->Get(number));
  Resume(batch);
  BeginMarks(batch);
  held_back_ = false;
  const absl::Status put = PutRecorded(batch, batch.enqueued_items, batch.items, stop);
  again_.reset();
  MUSTER_RETURN_IF_ERROR(put);
  if (batch.state == BatchState::kOpen) MUSTER_RETURN_IF_ERROR(SplitRest(batch, stop));
  if (held_back_) return absl::OkStatus();
  progress_.transactions_enqueued = progress_.transactions_read.load();
  for (const queue::QueueId& partition : partitions_) Trigger(partition, 0);
  return absl::OkStatus();
}

void BatchEnqueuer::BeginMarks(const Batch& batch) {
  marks_ = batch.put_marks;
  if (marks_.empty() && batch.enqueued_items == 0) marks_.resize(partitions_.size());
  incarnations_.assign(partitions_.size(), "");
}

void BatchEnqueuer::Resume(const Batch& batch) {
  progress_.bytes_read = batch.source_bytes;
  progress_.transactions_read = batch.transactions;
  if (batch.enqueued_items == batch.items) progress_.transactions_enqueued = batch.transactions;
}

absl::Status BatchEnqueuer::BeginRun(const Batch& batch, ItemRun* run) {
  if (options_.back_pressure == nullptr || held_back_) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(const BackPressure::Room room,
                          options_.back_pressure->RoomFor(partitions_, batch.number));
  held_back_ = room.empty();
  if (!held_back_) run->room = room;
  return absl::OkStatus();
}

absl::Status BatchEnqueuer::PutRecorded(const Batch& batch, uint64_t first, uint64_t end,
                                        const std::stop_token& stop) {
  ItemRun run(&batch, job_, source_->header(), deps_.blobs);
  int wanted = std::min(options_.first_run_items, options_.run_items);
  for (; first < end; wanted = std::min(2 * wanted, options_.run_items)) {
    if (stop.stop_requested()) return absl::CancelledError("stopped while putting items");
    MUSTER_RETURN_IF_ERROR(BeginRun(batch, &run));
    if (held_back_) return absl::OkStatus();
    MUSTER_ASSIGN_OR_RETURN(
        const std::vector<ItemBoundary> items,
        deps_.ledger->Items(batch.number, first, std::min<uint64_t>(end - first, wanted)));
    if (items.empty()) {
      return absl::DataLossError(
          absl::StrCat("ledger: batch ", batch.number, " lacks its item ", first));
    }
    for (const ItemBoundary& item : items) {
      if (run.IsFull(wanted)) break;
      MUSTER_RETURN_IF_ERROR(AddRecorded(batch, first++, item, &run));
    }
    MUSTER_RETURN_IF_ERROR(Put(batch, &run, stop));
  }
  return absl::OkStatus();
}

absl::Status BatchEnqueuer::SplitRest(const Batch& batch, const std::stop_token& stop) {
  std::optional<ItemBoundary> last;
  if (batch.items > 0) {
    MUSTER_ASSIGN_OR_RETURN(const std::vector<ItemBoundary> items,
                            deps_.ledger->Items(batch.number, batch.items - 1, 1));
    if (items.empty()) {
      return absl::DataLossError(
          absl::StrCat("ledger: batch ", batch.number, " lacks its last item"));
    }
    last = items.front();
  }
  if (job_->order_by.has_value()) {
    MUSTER_RETURN_IF_ERROR(SplitInOrder(batch, last, stop));
  } else {
    input::SliceStart start = source_->FirstRecord();
    if (last.has_value()) {
      MUSTER_ASSIGN_OR_RETURN(start, source_->After(*last));
    }
    MUSTER_RETURN_IF_ERROR(SplitFrom(batch, start, batch.items, stop));
  }
  MUSTER_FAILPOINT("initiator.before_seal");
  MUSTER_RETURN_IF_ERROR(deps_.ledger->Seal(batch.number, source_->size()));
  MUSTER_FAILPOINT("initiator.after_seal");
  return absl::OkStatus();
}

absl::Status BatchEnqueuer::SplitFrom(const Batch& batch, const input::SliceStart& start,
                                      uint64_t index, const std::stop_token& stop) {
  input::SliceReader slices = source_->Slices(start, SliceLimitsOf(*job_));
  ItemRun run(&batch, job_, source_->header(), deps_.blobs);
  int wanted = std::min(options_.first_run_items, options_.run_items);
  while (true) {
    if (stop.stop_requested()) return absl::CancelledError("stopped while splitting the input");
    const absl::StatusOr<std::optional<input::Slice>> next = slices.Next();
    if (input::HasNotArrived(next.status())) MUSTER_RETURN_IF_ERROR(Put(batch, &run, stop));
    MUSTER_RETURN_IF_ERROR(next.status());
    const std::optional<input::Slice>& slice = *next;
    if (!slice.has_value()) break;
    if (run.unrecorded.empty()) MUSTER_RETURN_IF_ERROR(BeginRun(batch, &run));
    MUSTER_ASSIGN_OR_RETURN(const ItemBoundary item, source_->BoundaryOf(*slice));
    run.unrecorded.push_back(item);
    // To encode an item may store a blob, so those that are not put now are encoded later.
    if (held_back_) {
      run.next_index = index + 1;
    } else {
      MUSTER_RETURN_IF_ERROR(run.Add(index, item, slice->data));
    }
    ++index;
    MUSTER_RETURN_IF_ERROR(EndItem(batch, item, &run, &wanted, stop));
  }
  return Put(batch, &run, stop);
}

absl::Status BatchEnqueuer::SplitInOrder(const Batch& batch,
                                         const std::optional<ItemBoundary>& last,
                                         const std::stop_token& stop) {
  OrderedItems items(source_, job_);
  if (last.has_value()) MUSTER_RETURN_IF_ERROR(items.GoOnBehind(*last));
  ItemRun run(&batch, job_, source_->header(), deps_.blobs);
  uint64_t index = batch.items;
  int wanted = std::min(options_.first_run_items, options_.run_items);
  while (true) {
    if (stop.stop_requested()) return absl::CancelledError("stopped while splitting the input");
    absl::StatusOr<std::optional<OrderedItem>> item = items.Next();
    if (input::HasNotArrived(item.status())) MUSTER_RETURN_IF_ERROR(Put(batch, &run, stop));
    MUSTER_RETURN_IF_ERROR(item.status());
    if (!item->has_value()) break;
    if (run.unrecorded.empty()) MUSTER_RETURN_IF_ERROR(BeginRun(batch, &run));
    run.unrecorded.push_back((*item)->boundary);
    if (held_back_) {
      run.next_index = index + 1;
    } else {
      MUSTER_RETURN_IF_ERROR(run.AddInOrder(index, **item));
    }
    ++index;
    MUSTER_RETURN_IF_ERROR(EndItem(batch, (*item)->boundary, &run, &wanted, stop));
  }
  return Put(batch, &run, stop);
}

absl::Status BatchEnqueuer::EndItem(const Batch& batch, const ItemBoundary& item, ItemRun* run,
                                    int* wanted, const std::stop_token& stop) {
  progress_.bytes_read = item.offset + item.length;
  progress_.transactions_read += item.transactions;
  if (!run->IsFull(*wanted)) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(Put(batch, run, stop));
  *wanted = std::min(2 * *wanted, options_.run_items);
  return absl::OkStatus();
}

absl::Status BatchEnqueuer::AddRecorded(const Batch& batch, uint64_t index,
                                        const ItemBoundary& item, ItemRun* run) {
  if (job_->order_by.has_value()) return AddRecordedInOrder(index, item, run);
  std::string slice;
  if (run->NeedsSlice(item)) {
    MUSTER_ASSIGN_OR_RETURN(slice, source_->Read(item));
    // Its worker would take it for a damaged message, and give the item up.
    if (base::Fingerprint(slice) != item.content) {
      return absl::DataLossError(absl::StrCat(
          source_->path(), ": the bytes of item ", batch.number, "/", index, " (line ",
          item.first_line, ") have changed since the batch was split. Put it back from a backup, ",
          "or cancel the batch and submit it again"));
    }
  }
  return run->Add(index, item, slice);
}

absl::Status BatchEnqueuer::AddRecordedInOrder(uint64_t index, const ItemBoundary& boundary,
                                               ItemRun* run) {
  if (boundary.oversized) return run->Add(index, boundary, "");
  if (!again_.has_value()) again_.emplace(source_, job_);
  MUSTER_ASSIGN_OR_RETURN(const OrderedItem item, again_->Read(boundary));
  return run->AddInOrder(index, item);
}

absl::Status BatchEnqueuer::Record(const Batch& batch, ItemRun* run) {
  if (run->unrecorded.empty()) return absl::OkStatus();
  MUSTER_CHECK(!run->again && run->unrecorded.size() <= run->next_index, "batch ", batch.number,
               ", unrecorded ", run->unrecorded.size(), ", next ", run->next_index, ", again ",
               run->again);
  const uint64_t first = run->next_index - run->unrecorded.size();
  const absl::Status recorded = deps_.ledger->Append(batch.number, first, run->unrecorded);
  if (absl::IsFailedPrecondition(recorded)) DeleteUnrecorded(batch.number, first, run->unrecorded);
  MUSTER_RETURN_IF_ERROR(recorded);
  MUSTER_FAILPOINT("initiator.after_items_recorded");
  return absl::OkStatus();
}

absl::Status BatchEnqueuer::Put(const Batch& batch, ItemRun* run, const std::stop_token& stop) {
  MUSTER_CHECK(run->unrecorded.empty() || held_back_ ||
                   run->unrecorded.size() == static_cast<size_t>(run->items),
               "batch ", batch.number, ", items ", run->items, ", unrecorded ",
               run->unrecorded.size());
  MUSTER_RETURN_IF_ERROR(Record(batch, run));
  run->unrecorded.clear();
  if (run->items == 0) return absl::OkStatus();
  for (size_t i = 0; i < partitions_.size(); ++i) {
    if (run->messages[i].empty()) continue;
    const auto count = static_cast<int64_t>(run->messages[i].size());
    MUSTER_RETURN_IF_ERROR(PutPartition(batch, i, *run, stop));
    MUSTER_FAILPOINT("initiator.after_put");
    run->messages[i].clear();
    run->indexes[i].clear();
    Trigger(partitions_[i], count);
  }
  MUSTER_RETURN_IF_ERROR(deps_.ledger->MarkEnqueued(batch.number, run->next_index, marks_));
  MUSTER_FAILPOINT("initiator.after_put_noted");
  if (options_.back_pressure != nullptr) {
    options_.back_pressure->NotePut(partitions_, batch.number, run->items,
                                    static_cast<int64_t>(run->bytes));
  }
  if (!run->again) progress_.transactions_enqueued += run->transactions;
  run->items = 0;
  run->bytes = 0;
  run->transactions = 0;
  return options_.before_next_run ? options_.before_next_run() : absl::OkStatus();
}

absl::Status BatchEnqueuer::PutPartition(const Batch& batch, size_t partition, const ItemRun& run,
                                         const std::stop_token& stop) {
  if (!telemetry::Wants(deps_.spans, batch.trace)) {
    return PutInto(partition, run.messages[partition], run.again, stop);
  }
  const absl::Time began = deps_.clock->Now();
  const absl::Status put = PutInto(partition, run.messages[partition], run.again, stop);
  RecordPut(deps_.spans, batch, partitions_[partition],
            {run.indexes[partition], began, deps_.clock->Now(), put});
  return put;
}

// What is put again was lost, maybe with its queue: then only a look tells.
absl::StatusOr<std::string> BatchEnqueuer::IncarnationOf(const queue::QueueId& queue,
                                                         bool again) const {
  if (!again && options_.late_incarnation) return options_.late_incarnation(queue);
  MUSTER_ASSIGN_OR_RETURN(const queue::QueueExtent extent, deps_.queues->Extent(queue));
  return extent.incarnation;
}

absl::Status BatchEnqueuer::PutInto(size_t partition,
                                    const std::vector<queue::NewMessage>& messages, bool again,
                                    const std::stop_token& stop) {
  const queue::QueueId& queue = partitions_[partition];
  std::string& incarnation = incarnations_[partition];
  if (incarnation.empty()) {
    MUSTER_ASSIGN_OR_RETURN(incarnation, retry_.Run(stop, [&](const base::RetryAttempt&) {
      return IncarnationOf(queue, again);
    }));
    // All that was put before is counted, or is put again now.
    if (again && !marks_.empty()) marks_[partition] = {};
  }
  // Safe to repeat: the queue knows each item by its dedup id.
  MUSTER_ASSIGN_OR_RETURN(const auto puts, retry_.Run(stop, [&](const base::RetryAttempt&) {
    return deps_.queues->Put(queue, messages);
  }));
  if (marks_.empty()) return absl::OkStatus();
  ledger::PutMark& mark = marks_[partition];
  if (mark.incarnation.empty()) mark.incarnation = incarnation;
  // The mark of an older incarnation stays: it says that earlier items are lost.
  if (mark.incarnation != incarnation) return absl::OkStatus();
  for (const queue::PutResult& put : puts) mark.end = std::max(mark.end, put.position + 1);
  return absl::OkStatus();
}

absl::Status BatchEnqueuer::Refill(uint64_t number, absl::Span<const uint64_t> indexes) {
  MUSTER_ASSIGN_OR_RETURN(Batch batch, deps_.ledger->Get(number));
  MUSTER_ASSIGN_OR_RETURN(batch.refills, deps_.ledger->BeginRefill(number));
  MUSTER_FAILPOINT("initiator.after_refill_begun");
  base::Log(base::kWarning, "putting items again that the queue lost",
            {{"batch", number}, {"items", indexes.size()}, {"refill", batch.refills}});
  BeginMarks(batch);
  // Also after an error: content that a person mends is to be read anew.
  const absl::Cleanup forget_window = [this] { again_.reset(); };
  ItemRun run(&batch, job_, source_->header(), deps_.blobs);
  run.again = true;
  for (const uint64_t index : indexes) {
    MUSTER_ASSIGN_OR_RETURN(const std::vector<ItemBoundary> item,
                            deps_.ledger->Items(number, index, 1));
    if (item.empty()) {
      return absl::DataLossError(absl::StrCat("ledger: batch ", number, " lacks its item ", index));
    }
    MUSTER_RETURN_IF_ERROR(AddRecorded(batch, index, item.front(), &run));
    if (run.IsFull(options_.run_items)) {
      MUSTER_RETURN_IF_ERROR(PutAgain(batch, &run));
    }
  }
  return PutAgain(batch, &run);
}

absl::Status BatchEnqueuer::PutAgain(const Batch& batch, ItemRun* run) {
  const auto items = static_cast<double>(run->items);
  MUSTER_RETURN_IF_ERROR(Put(batch, run, {}));
  telemetry::Counters<1>(deps_.metrics, telemetry::kRefilledItems)
      .With({item::LogicalInput(batch.job)})
      .Add(items);
  return absl::OkStatus();
}

// The ledger does not have these items, so no later step would find their blobs.
void BatchEnqueuer::DeleteUnrecorded(uint64_t number, uint64_t first,
                                     absl::Span<const ItemBoundary> items) {
  // A batch that another writer works on needs its blobs.
  const absl::StatusOr<Batch> batch = deps_.ledger->Get(number);
  if (!batch.ok() || batch->state != ledger::BatchState::kCancelled) return;
  for (size_t i = 0; i < items.size(); ++i) {
    if (items[i].length <= item::kInlinePayloadBytes) continue;  // never a blob
    const std::string name = item::BlobName(number, static_cast<uint32_t>(first + i), batch->owner);
    base::LogUnlessOk(base::kWarning, "a blob stays behind", deps_.blobs->Delete(name),
                      {{"blob", name}});
  }
}

void BatchEnqueuer::Trigger(const queue::QueueId& queue, int64_t messages) {
  // Best effort: a listener that misses it finds the work with its safety check.
  const absl::Status published =
      deps_.bus->Publish({options_.instance, bus::CloudQueueWorkDetectedTriggerEvent{
                                                 queue.account, queue.name, messages}});
  base::LogUnlessOk(base::kWarning, "trigger not sent", published, {{"queue", queue.ToString()}});
}

}  // namespace muster::initiator::batch
