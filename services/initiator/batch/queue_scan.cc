// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/batch/queue_scan.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/status.h"
#include "muster/item/items_in_message.h"
#include "muster/queue/limits.h"

namespace muster::initiator::batch {
namespace {

// Between two scans: at least this, and so many times as long as a scan takes.
constexpr absl::Duration kMinPause = absl::Seconds(10);
constexpr int kPauseFactor = 20;
// After a scan that was given up.
constexpr absl::Duration kGivenUpPause = absl::Minutes(10);

// What one call reads: a thread of the scheduler serves other batches, too.
constexpr int kPagesTogether = 64;
constexpr absl::Duration kTimeTogether = absl::Seconds(1);

// The store did not fail, but the scan says nothing: there is too much to note.
bool IsGivenUp(const absl::Status& status) { return absl::IsOutOfRange(status); }
// The same: its output queue is not the one of its beginning.
bool IsVoid(const absl::Status& status) { return absl::IsAborted(status); }

}  // namespace

bool QueueSnapshot::Had(uint64_t batch, uint64_t index) const {
  return wholly_.contains(batch) ||
         std::binary_search(items_.begin(), items_.end(), Item(batch, index));
}

QueueScan::QueueScan(Queues queues, queue::QueueStore* store, base::Clock* clock, size_t max_items)
    : queues_(std::move(queues)), store_(store), clock_(clock), max_items_(max_items) {}

uint64_t QueueScan::Join(uint64_t batch) {
  base::MutexLock lock(&mu_);
  members_.insert(batch);
  return begun_ + 1;
}

void QueueScan::Leave(uint64_t batch) {
  base::MutexLock lock(&mu_);
  members_.erase(batch);
  untaken_.erase(batch);
  if (untaken_.empty()) snapshot_ = nullptr;
}

std::shared_ptr<const QueueSnapshot> QueueScan::Take(uint64_t batch, uint64_t number) {
  base::MutexLock lock(&mu_);
  members_.insert(batch);  // an earlier engine of the batch may have left for it
  if (snapshot_ == nullptr || finished_ < number || untaken_.erase(batch) == 0) return nullptr;
  std::shared_ptr<const QueueSnapshot> taken = snapshot_;
  if (untaken_.empty()) snapshot_ = nullptr;
  return taken;
}

std::unique_ptr<QueueScan::Run> QueueScan::TakeRun() {
  base::MutexLock lock(&mu_);
  if (is_busy_) return nullptr;
  if (run_ == nullptr) {
    if (clock_->Monotonic() < due_) return nullptr;
    run_ = std::make_unique<Run>();
    run_->number = ++begun_;
    run_->batches = members_;
    run_->found = std::make_shared<QueueSnapshot>();
  }
  is_busy_ = true;
  return std::move(run_);
}

absl::Status QueueScan::Advance() {
  std::unique_ptr<Run> run = TakeRun();
  if (run == nullptr) return absl::OkStatus();
  const absl::Duration began = clock_->Monotonic();
  const absl::Duration before = run->spent;
  absl::StatusOr<bool> finished = false;
  for (int i = 0; i < kPagesTogether && run->spent - before < kTimeTogether; ++i) {
    finished = ReadPage(run.get());
    if (!finished.ok() || *finished) break;
    run->spent = before + (clock_->Monotonic() - began);
  }
  if (!finished.ok() || *finished) {
    const absl::Status& ended = finished.status();
    Finish(std::move(run), ended);
    return IsGivenUp(ended) || IsVoid(ended) ? absl::OkStatus() : ended;
  }
  base::MutexLock lock(&mu_);
  run_ = std::move(run);
  is_busy_ = false;
  return absl::OkStatus();
}

absl::StatusOr<bool> QueueScan::ReadPage(Run* run) {
  const bool is_output = run->queue == queues_.inputs.size();
  const queue::QueueId& id = is_output ? queues_.output : queues_.inputs[run->queue];
  if (run->from == 0) {
    MUSTER_ASSIGN_OR_RETURN(run->extent, store_->Extent(id));
  }
  MUSTER_ASSIGN_OR_RETURN(const std::vector<queue::StoredMessage> page,
                          store_->Scan(id, run->from, queue::kMaxScan));
  for (const queue::StoredMessage& message : page) Note(message, is_output, run);
  if (run->found->items_.size() > max_items_) {
    return absl::OutOfRangeError("more items wait than a scan can note");
  }
  if (!page.empty()) run->from = page.back().position + 1;
  const bool is_read = page.empty() || (!is_output && run->from >= run->extent.next);
  return is_read ? EndQueue(run) : false;
}

absl::StatusOr<bool> QueueScan::EndQueue(Run* run) {
  if (run->queue < queues_.inputs.size()) {
    ++run->queue;
    run->from = 0;
    return false;
  }
  MUSTER_ASSIGN_OR_RETURN(const queue::QueueExtent end, store_->Extent(queues_.output));
  if (end.incarnation != run->extent.incarnation || end.next < run->from) {
    return absl::AbortedError(absl::StrCat("queue '", queues_.output.ToString(),
                                           "' was made anew while it was looked through"));
  }
  return true;
}

void QueueScan::Note(const queue::StoredMessage& message, bool is_result, Run* run) const {
  const std::optional<item::ItemsInMessage> items =
      is_result ? item::ItemsInResult(message.body) : item::ItemsInWork(message.body);
  if (!items.has_value() || !run->batches.contains(items->batch)) return;
  QueueSnapshot& found = *run->found;
  if (!is_result) found.in_input_.insert(items->batch);
  if (items->and_others) found.wholly_.insert(items->batch);
  for (const uint32_t index : items->indexes) found.items_.emplace_back(items->batch, index);
}

void QueueScan::Finish(std::unique_ptr<Run> run, const absl::Status& ended) {
  std::sort(run->found->items_.begin(), run->found->items_.end());
  const bool is_given_up = IsGivenUp(ended);
  if (is_given_up) {
    base::Log(base::kWarning,
              "what a job's queues lost behind messages that wait is found once fewer items wait",
              {{"queue", queues_.output.ToString()}, {"items_at_most", max_items_}});
  }
  base::MutexLock lock(&mu_);
  is_busy_ = false;
  due_ = clock_->Monotonic() +
         std::max(is_given_up ? kGivenUpPause : kMinPause, kPauseFactor * run->spent);
  if (!ended.ok()) return;
  finished_ = run->number;
  untaken_.clear();
  for (const uint64_t batch : run->batches) {
    if (members_.contains(batch)) untaken_.insert(batch);
  }
  snapshot_ = untaken_.empty() ? nullptr : std::move(run->found);
}

}  // namespace muster::initiator::batch
