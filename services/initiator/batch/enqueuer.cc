#include "services/initiator/batch/enqueuer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/failpoint.h"
#include "muster/base/log.h"
#include "muster/base/status.h"
#include "muster/item/queue_names.h"
#include "muster/item/work_item_codec.h"

namespace muster::initiator::batch {
namespace {

using ledger::Batch;
using ledger::BatchState;
using ledger::ItemBoundary;

// Boundaries read from the ledger at a time.
constexpr size_t kItemsPage = 1024;
// A run ends early when its bodies reach this size, so that runs of large items stay small in
// memory.
constexpr size_t kRunBytes = size_t{8} << 20;

item::BatchIdentity IdentityOf(const Batch& batch, const input::Header& header) {
  item::BatchIdentity identity;
  identity.batch = batch.number;
  identity.job = batch.job;
  identity.job_revision = batch.job_revision;
  identity.handler_version = batch.handler_version;
  if (batch.sla.has_value()) identity.deadline = batch.created + *batch.sla;
  identity.positions = header.positions;
  identity.header_fields = static_cast<int>(header.fields.size());
  identity.trace = batch.trace;
  identity.owner = batch.owner;
  return identity;
}

// The queue recognises a put that is repeated after a crash by this id; a refill has ids of its
// own, and so has another initiator's batch that was given the same number.
std::string DedupId(const Batch& batch, uint64_t index) {
  return absl::StrCat("b", batch.number, batch.owner.empty() ? "" : "-", batch.owner, ".", index,
                      ".", batch.refills);
}

}  // namespace

struct BatchEnqueuer::Run {
  Run(item::WorkItemEncoder item_encoder, size_t partitions)
      : encoder(std::move(item_encoder)), messages(partitions) {}

  item::WorkItemEncoder encoder;
  std::vector<std::vector<queue::NewMessage>> messages;  // by partition
  std::vector<ItemBoundary> unrecorded;                  // not yet in the ledger
  uint64_t next_index = 0;                               // behind the last item of this run
  uint64_t transactions = 0;
  int items = 0;
  size_t bytes = 0;
  bool again = false;  // its items were put before
};

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

BatchEnqueuer::Run BatchEnqueuer::NewRun(const Batch& batch) const {
  return Run(item::WorkItemEncoder(IdentityOf(batch, source_->header()),
                                   job_->input.max_record_bytes, deps_.blobs),
             partitions_.size());
}

absl::Status BatchEnqueuer::Enqueue(uint64_t number, const std::stop_token& stop) {
  MUSTER_ASSIGN_OR_RETURN(const Batch batch, deps_.ledger->Get(number));
  Resume(batch);
  BeginMarks(batch);
  MUSTER_RETURN_IF_ERROR(PutRecorded(batch, batch.enqueued_items, batch.items, stop));
  if (batch.state == BatchState::kOpen) MUSTER_RETURN_IF_ERROR(SplitRest(batch, stop));
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

absl::Status BatchEnqueuer::PutRecorded(const Batch& batch, uint64_t first, uint64_t end,
                                        const std::stop_token& stop) {
  Run run = NewRun(batch);
  int wanted = std::min(options_.first_run_items, options_.run_items);
  for (; first < end; wanted = std::min(2 * wanted, options_.run_items)) {
    if (stop.stop_requested()) return absl::CancelledError("stopped while putting items");
    MUSTER_ASSIGN_OR_RETURN(
        const std::vector<ItemBoundary> items,
        deps_.ledger->Items(batch.number, first, std::min<uint64_t>(end - first, wanted)));
    if (items.empty()) {
      return absl::DataLossError(
          absl::StrCat("ledger: batch ", batch.number, " lacks its item ", first));
    }
    for (const ItemBoundary& item : items) {
      std::string slice;
      if (!item.oversized) {
        MUSTER_ASSIGN_OR_RETURN(slice, source_->Read(item));
      }
      MUSTER_RETURN_IF_ERROR(AddItem(batch, first++, item, slice, &run));
    }
    MUSTER_RETURN_IF_ERROR(Put(batch, &run, stop));
  }
  return absl::OkStatus();
}

absl::Status BatchEnqueuer::SplitRest(const Batch& batch, const std::stop_token& stop) {
  input::SliceStart start = source_->FirstRecord();
  if (batch.items > 0) {
    MUSTER_ASSIGN_OR_RETURN(const std::vector<ItemBoundary> last,
                            deps_.ledger->Items(batch.number, batch.items - 1, 1));
    if (last.empty()) {
      return absl::DataLossError(
          absl::StrCat("ledger: batch ", batch.number, " lacks its last item"));
    }
    MUSTER_ASSIGN_OR_RETURN(start, source_->After(last.front()));
  }
  input::SliceReader slices = source_->Slices(start, SliceLimitsOf(*job_));
  Run run = NewRun(batch);
  int wanted = std::min(options_.first_run_items, options_.run_items);
  uint64_t index = batch.items;
  while (true) {
    if (stop.stop_requested()) return absl::CancelledError("stopped while splitting the input");
    const absl::StatusOr<std::optional<input::Slice>> next = slices.Next();
    if (input::HasNotArrived(next.status())) MUSTER_RETURN_IF_ERROR(Put(batch, &run, stop));
    MUSTER_RETURN_IF_ERROR(next.status());
    const std::optional<input::Slice>& slice = *next;
    if (!slice.has_value()) break;
    MUSTER_ASSIGN_OR_RETURN(const ItemBoundary item, source_->BoundaryOf(*slice));
    run.unrecorded.push_back(item);
    MUSTER_RETURN_IF_ERROR(AddItem(batch, index++, item, slice->data, &run));
    progress_.bytes_read = item.offset + item.length;
    progress_.transactions_read += item.transactions;
    if (run.items >= wanted || run.bytes >= kRunBytes) {
      MUSTER_RETURN_IF_ERROR(Put(batch, &run, stop));
      wanted = std::min(2 * wanted, options_.run_items);
    }
  }
  MUSTER_RETURN_IF_ERROR(Put(batch, &run, stop));
  MUSTER_FAILPOINT("initiator.before_seal");
  MUSTER_RETURN_IF_ERROR(deps_.ledger->Seal(batch.number, source_->size()));
  MUSTER_FAILPOINT("initiator.after_seal");
  return absl::OkStatus();
}

absl::Status BatchEnqueuer::AddItem(const Batch& batch, uint64_t index, const ItemBoundary& item,
                                    absl::string_view slice, Run* run) {
  // Put records and marks a run by its last index alone.
  MUSTER_CHECK(run->again || run->items == 0 || index == run->next_index, "batch ", batch.number,
               ", item ", index, ", next ", run->next_index);
  MUSTER_ASSIGN_OR_RETURN(std::string body,
                          run->encoder.Encode(static_cast<uint32_t>(index), item, slice));
  run->bytes += body.size();
  run->transactions += item.transactions;
  run->next_index = index + 1;
  ++run->items;
  queue::NewMessage message;
  message.body = std::move(body);
  message.ttl = job_->queue.ttl;
  message.dedup_id = DedupId(batch, index);
  run->messages[index % run->messages.size()].push_back(std::move(message));
  return absl::OkStatus();
}

absl::Status BatchEnqueuer::Put(const Batch& batch, Run* run, const std::stop_token& stop) {
  if (run->items == 0) return absl::OkStatus();
  if (!run->unrecorded.empty()) {
    MUSTER_CHECK(!run->again && run->unrecorded.size() == static_cast<size_t>(run->items) &&
                     run->unrecorded.size() <= run->next_index,
                 "batch ", batch.number, ", items ", run->items, ", unrecorded ",
                 run->unrecorded.size(), ", next ", run->next_index, ", again ", run->again);
    const uint64_t first = run->next_index - run->unrecorded.size();
    const absl::Status recorded = deps_.ledger->Append(batch.number, first, run->unrecorded);
    if (absl::IsFailedPrecondition(recorded)) {
      DeleteUnrecorded(batch.number, first, run->unrecorded);
    }
    MUSTER_RETURN_IF_ERROR(recorded);
    MUSTER_FAILPOINT("initiator.after_items_recorded");
  }
  for (size_t i = 0; i < partitions_.size(); ++i) {
    if (run->messages[i].empty()) continue;
    const auto count = static_cast<int64_t>(run->messages[i].size());
    MUSTER_RETURN_IF_ERROR(PutInto(i, run->messages[i], run->again, stop));
    MUSTER_FAILPOINT("initiator.after_put");
    run->messages[i].clear();
    Trigger(partitions_[i], count);
  }
  MUSTER_RETURN_IF_ERROR(deps_.ledger->MarkEnqueued(batch.number, run->next_index, marks_));
  MUSTER_FAILPOINT("initiator.after_put_noted");
  if (!run->again) progress_.transactions_enqueued += run->transactions;
  run->unrecorded.clear();
  run->items = 0;
  run->bytes = 0;
  run->transactions = 0;
  return options_.before_next_run ? options_.before_next_run() : absl::OkStatus();
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
  Run run = NewRun(batch);
  run.again = true;
  for (const uint64_t index : indexes) {
    MUSTER_ASSIGN_OR_RETURN(const std::vector<ItemBoundary> item,
                            deps_.ledger->Items(number, index, 1));
    if (item.empty()) {
      return absl::DataLossError(absl::StrCat("ledger: batch ", number, " lacks its item ", index));
    }
    MUSTER_ASSIGN_OR_RETURN(const std::string slice, item.front().oversized
                                                         ? absl::StatusOr<std::string>("")
                                                         : source_->Read(item.front()));
    MUSTER_RETURN_IF_ERROR(AddItem(batch, index, item.front(), slice, &run));
    if (run.items >= options_.run_items || run.bytes >= kRunBytes) {
      MUSTER_RETURN_IF_ERROR(Put(batch, &run, {}));
    }
  }
  return Put(batch, &run, {});
}

// The ledger does not have these items, so no later step would find their blobs.
void BatchEnqueuer::DeleteUnrecorded(uint64_t number, uint64_t first,
                                     absl::Span<const ItemBoundary> items) {
  // A batch that another writer works on needs its blobs.
  const absl::StatusOr<Batch> batch = deps_.ledger->Get(number);
  if (!batch.ok() || batch->state != ledger::BatchState::kCancelled) return;
  for (size_t i = 0; i < items.size(); ++i) {
    if (items[i].length <= item::kInlinePayloadBytes) continue;  // never claim-checked
    const std::string name = item::BlobName(number, static_cast<uint32_t>(first + i), batch->owner);
    base::LogUnlessOk(base::kWarning, "a blob stays behind", deps_.blobs->Delete(name),
                      {{"blob", name}});
  }
}

absl::Status DeleteItemBlobs(ledger::BatchLedger* ledger, blob::BlobStore* blobs,
                             const Batch& batch, const absl::flat_hash_set<uint64_t>& keep) {
  for (uint64_t first = 0; first < batch.items;) {
    MUSTER_ASSIGN_OR_RETURN(const std::vector<ItemBoundary> items,
                            ledger->Items(batch.number, first, kItemsPage));
    if (items.empty()) break;
    for (size_t i = 0; i < items.size(); ++i) {
      if (items[i].length <= item::kInlinePayloadBytes) continue;  // never claim-checked
      if (keep.contains(first + i)) continue;
      MUSTER_RETURN_IF_ERROR(blobs->Delete(
          item::BlobName(batch.number, static_cast<uint32_t>(first + i), batch.owner)));
    }
    first += items.size();
  }
  return absl::OkStatus();
}

void BatchEnqueuer::Trigger(const queue::QueueId& queue, int64_t messages) {
  // Best effort: a listener that misses it finds the work with its safety check.
  const absl::Status published =
      deps_.bus->Publish({options_.instance, bus::CloudQueueWorkDetectedTriggerEvent{
                                                 queue.account, queue.name, messages}});
  base::LogUnlessOk(base::kWarning, "trigger not sent", published, {{"queue", queue.ToString()}});
}

}  // namespace muster::initiator::batch
