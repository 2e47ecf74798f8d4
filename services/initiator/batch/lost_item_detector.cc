// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/batch/lost_item_detector.h"

#include <algorithm>
#include <utility>

#include "muster/base/check.h"
#include "muster/base/status.h"
#include "muster/item/queue_names.h"

namespace muster::initiator::batch {
namespace {

ledger::PutMark EndOf(const queue::QueueExtent& extent) {
  return {extent.incarnation, extent.next};
}

// Whether the queue holds nothing of what was put up to the mark. An end that lies before the mark
// means that the store was set back, behind what it had acknowledged.
bool HasPassed(const queue::QueueExtent& extent, const ledger::PutMark& mark) {
  return extent.incarnation != mark.incarnation || extent.oldest >= mark.end ||
         extent.next < mark.end;
}

// Longer than what flows stays at the head of its queue, as a rule.
constexpr absl::Duration kHeadStays = absl::Seconds(10);
// A backlog whose head moves will be passed; only one that takes this long is looked through.
constexpr absl::Duration kMaxWait = absl::Minutes(10);

bool AnyOf(const std::vector<bool>& partitions) {
  return std::find(partitions.begin(), partitions.end(), true) != partitions.end();
}
bool AllOf(const std::vector<bool>& partitions) {
  return std::find(partitions.begin(), partitions.end(), false) == partitions.end();
}

}  // namespace

LostItemDetector::LostItemDetector(const job::JobDefinition& job, const std::string& account,
                                   queue::QueueStore* queues, report::ReportClient* report_client,
                                   std::shared_ptr<QueueScan> scan, base::Clock* clock)
    : inputs_(item::InputQueues(account, job.name, job.queue.partitions)),
      output_(item::OutputQueue(account, job.name, 0)),
      queues_(queues),
      report_client_(report_client),
      scan_(std::move(scan)),
      clock_(clock),
      in_order_(job.order_by.has_value()),
      watched_(inputs_.size()) {}

LostItemDetector::~LostItemDetector() { LeaveScan(); }

void LostItemDetector::LeaveScan() {
  if (batch_ != 0) scan_->Leave(batch_);
  batch_ = 0;
}

absl::StatusOr<std::vector<ledger::PutMark>> LostItemDetector::MarksOfNow() {
  LeaveScan();
  watched_.assign(inputs_.size(), {});
  std::vector<ledger::PutMark> marks;
  for (const queue::QueueId& input : inputs_) {
    MUSTER_ASSIGN_OR_RETURN(const queue::QueueExtent extent, queues_->Extent(input));
    marks.push_back(EndOf(extent));
  }
  return marks;
}

absl::StatusOr<std::vector<bool>> LostItemDetector::PassedPartitions(
    absl::Span<const ledger::PutMark> marks) {
  MUSTER_CHECK(marks.size() == inputs_.size(), "marks ", marks.size(), ", partitions ",
               inputs_.size());
  std::vector<bool> input_passed(inputs_.size());
  for (size_t i = 0; i < inputs_.size(); ++i) {
    // Also the first time: then there is no output mark to forget.
    if (watched_[i].input != marks[i]) {
      watched_[i] = {.input = marks[i]};
      LeaveScan();
    }
    input_passed[i] = marks[i].incarnation.empty() || watched_[i].output.has_value();
    if (input_passed[i]) continue;
    MUSTER_ASSIGN_OR_RETURN(const queue::QueueExtent extent, queues_->Extent(inputs_[i]));
    input_passed[i] = HasPassed(extent, marks[i]);
    if (!input_passed[i]) NoteHead(extent.oldest, &watched_[i]);
  }
  std::vector<bool> passed(inputs_.size());
  if (!AnyOf(input_passed)) return passed;
  // Read after the inputs: each result of a passed partition was put before.
  MUSTER_ASSIGN_OR_RETURN(const queue::QueueExtent output, queues_->Extent(output_));
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (!input_passed[i]) continue;
    std::optional<ledger::PutMark>& mark = watched_[i].output;
    if (!mark.has_value()) {
      mark = EndOf(output);
      watched_[i].head_since = absl::InfiniteDuration();
    }
    passed[i] = HasPassed(output, *mark);
    if (!passed[i]) NoteHead(output.oldest, &watched_[i]);
    if (passed[i]) watched_[i].head_since = absl::InfiniteDuration();
  }
  return passed;
}

void LostItemDetector::NoteHead(uint64_t head, Watched* partition) const {
  const bool stays = partition->head == head && partition->head_since != absl::InfiniteDuration();
  if (stays) return;
  partition->head = head;
  partition->head_since = clock_->Monotonic();
}

bool LostItemDetector::IsTimeForAScan() const {
  const absl::Duration now = clock_->Monotonic();
  return now - waits_since_ >= kMaxWait ||
         std::any_of(watched_.begin(), watched_.end(), [now](const Watched& partition) {
           return now - partition.head_since >= kHeadStays;
         });
}

absl::StatusOr<std::shared_ptr<const QueueSnapshot>> LostItemDetector::LookThrough(uint64_t batch) {
  if (scan_ == nullptr) return nullptr;
  if (batch_ == 0) {
    scan_number_ = scan_->Join(batch);
    batch_ = batch;
    waits_since_ = clock_->Monotonic();
  }
  if (IsTimeForAScan()) MUSTER_RETURN_IF_ERROR(scan_->Advance());
  std::shared_ptr<const QueueSnapshot> found = scan_->Take(batch, scan_number_);
  if (found != nullptr) {
    scan_number_ = scan_->Join(batch);
    waits_since_ = clock_->Monotonic();
  }
  return found;
}

absl::StatusOr<std::vector<uint64_t>> LostItemDetector::FindLost(const ledger::Batch& batch) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<bool> passed, PassedPartitions(batch.put_marks));
  std::shared_ptr<const QueueSnapshot> found;
  if (AllOf(passed)) {
    LeaveScan();
  } else {
    MUSTER_ASSIGN_OR_RETURN(found, LookThrough(batch.number));
    if (found == nullptr && !AnyOf(passed)) return std::vector<uint64_t>();
    // The key of an item says into which partition it was put, and its place is before what waits.
    if (in_order_ && (found == nullptr || found->HadInInput(batch.number))) {
      return std::vector<uint64_t>();
    }
  }
  // Asked for after the scan: a result that it did not find was counted before.
  const auto is_lost = [&](uint64_t index) {
    return AllOf(passed) || (!in_order_ && passed[index % passed.size()]) ||
           (found != nullptr && !found->Had(batch.number, index));
  };
  std::vector<uint64_t> lost;
  for (uint64_t from = 0;;) {
    MUSTER_ASSIGN_OR_RETURN(
        const std::vector<uint64_t> page,
        report_client_->UncountedItems(batch.number, batch.items, from, report::kMaxReportItems));
    for (const uint64_t index : page) {
      if (is_lost(index)) lost.push_back(index);
    }
    if (page.size() < report::kMaxReportItems) return lost;
    from = page.back() + 1;
  }
}

}  // namespace muster::initiator::batch
