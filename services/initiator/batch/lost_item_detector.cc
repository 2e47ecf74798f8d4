#include "services/initiator/batch/lost_item_detector.h"

#include <algorithm>

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

}  // namespace

LostItemDetector::LostItemDetector(const job::JobDefinition& job, const std::string& account,
                                   queue::QueueStore* queues, report::ReportClient* report_client)
    : inputs_(item::InputQueues(account, job.name, job.queue.partitions)),
      output_(item::OutputQueue(account, job.name, 0)),
      queues_(queues),
      report_client_(report_client),
      in_order_(job.order_by.has_value()),
      watched_(inputs_.size()) {}

absl::StatusOr<std::vector<ledger::PutMark>> LostItemDetector::MarksOfNow() {
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
    if (watched_[i].input != marks[i]) watched_[i] = {marks[i], std::nullopt};
    input_passed[i] = marks[i].incarnation.empty() || watched_[i].output.has_value();
    if (input_passed[i]) continue;
    MUSTER_ASSIGN_OR_RETURN(const queue::QueueExtent extent, queues_->Extent(inputs_[i]));
    input_passed[i] = HasPassed(extent, marks[i]);
  }
  std::vector<bool> passed(inputs_.size());
  if (std::find(input_passed.begin(), input_passed.end(), true) == input_passed.end()) {
    return passed;
  }
  // Read after the inputs: each result of a passed partition was put before.
  MUSTER_ASSIGN_OR_RETURN(const queue::QueueExtent output, queues_->Extent(output_));
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (!input_passed[i]) continue;
    std::optional<ledger::PutMark>& mark = watched_[i].output;
    if (!mark.has_value()) mark = EndOf(output);
    passed[i] = HasPassed(output, *mark);
  }
  return passed;
}

absl::StatusOr<std::vector<uint64_t>> LostItemDetector::FindLost(const ledger::Batch& batch) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<bool> passed, PassedPartitions(batch.put_marks));
  std::vector<uint64_t> lost;
  if (std::find(passed.begin(), passed.end(), true) == passed.end()) return lost;
  // Then the key of an item says into which partition it was put.
  if (in_order_ && std::find(passed.begin(), passed.end(), false) != passed.end()) return lost;
  for (uint64_t from = 0;;) {
    MUSTER_ASSIGN_OR_RETURN(
        const std::vector<uint64_t> page,
        report_client_->UncountedItems(batch.number, batch.items, from, report::kMaxReportItems));
    for (const uint64_t index : page) {
      if (passed[index % passed.size()]) lost.push_back(index);
    }
    if (page.size() < report::kMaxReportItems) return lost;
    from = page.back() + 1;
  }
}

}  // namespace muster::initiator::batch
