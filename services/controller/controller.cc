// SPDX-License-Identifier: Apache-2.0
#include "services/controller/controller.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/retry.h"
#include "muster/base/status.h"
#include "muster/item/work_item_codec.h"
#include "muster/queue/limits.h"
#include "services/controller/result_counter.h"

namespace muster::controller {
namespace {

// The shortest time between two looks for results that may share the next transaction.
constexpr absl::Duration kGatherPause = absl::Milliseconds(2);
// The most results that are gathered for one commit. One more page of messages, each full of
// results, still fits below the report's limit.
constexpr int kMaxHand =
    static_cast<int>(report::kMaxCommitItems - queue::kMaxReceive * item::kMaxTogether);
static_assert(kMaxHand > 0);
// Others are asked for when their results come.
constexpr size_t kMaxExpected = 64;

absl::Status Validate(const Options& options) {
  if (options.partitions.empty()) {
    return absl::InvalidArgumentError("a controller needs a partition to drain");
  }
  if (options.max_commit_results < 1 || options.max_commit_results > kMaxHand) {
    return absl::InvalidArgumentError(absl::StrCat("max_commit_results must be 1 to ", kMaxHand));
  }
  if (options.linger > options.visibility / 2) {
    return absl::InvalidArgumentError("linger must leave at least half of the visibility");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Controller>> Controller::Create(Options options, Events events,
                                                               Dependencies dependencies) {
  MUSTER_RETURN_IF_ERROR(Validate(options));
  return std::unique_ptr<Controller>(
      new Controller(std::move(options), std::move(events), dependencies));
}

Controller::Controller(Options options, Events events, Dependencies dependencies)
    : options_(std::move(options)), events_(std::move(events)), deps_(dependencies) {
  for (const queue::QueueId& partition : options_.partitions) {
    counters_.push_back(
        std::make_unique<ResultCounter>(partition, options_, &events_, deps_, stop_.get_token()));
  }
}

Controller::~Controller() { Stop(); }

bool Controller::HandIsEmpty() const {
  return std::all_of(counters_.begin(), counters_.end(),
                     [](const auto& counter) { return counter->in_hand() == 0; });
}

absl::Status Controller::Start() {
  for (const queue::QueueId& partition : options_.partitions) {
    absl::Status created = deps_.queues->CreateQueue(partition, {});
    if (!created.ok() && !absl::IsAlreadyExists(created)) return created;
  }
  MUSTER_ASSIGN_OR_RETURN(subscription_,
                          deps_.bus->Subscribe([this](const auto& event) { OnTrigger(event); }));
  thread_ = std::thread([this] { Run(); });
  return absl::OkStatus();
}

void Controller::OnTrigger(const bus::InterRoleCommunicationEvent& event) {
  const auto is_for = [&event](const queue::QueueId& id) {
    return bus::IsFor(event, id.account, id.name);
  };
  if (std::none_of(options_.partitions.begin(), options_.partitions.end(), is_for)) return;
  base::MutexLock lock(&mu_);
  work_detected_ = true;
  wake_.NotifyAll();
}

absl::Status Controller::CheckCompletion(uint64_t batch) {
  base::MutexLock lock(&mu_);
  asked_.insert(batch);
  wake_.NotifyAll();
  const absl::Status* const trouble = troubles_.Peek(batch);
  if (trouble == nullptr) return absl::OkStatus();
  absl::Status why = *trouble;
  troubles_.Erase(batch);
  return why;
}

void Controller::Expect(uint64_t batch) {
  base::MutexLock lock(&mu_);
  if (expected_.size() >= kMaxExpected) return;
  expected_.insert(batch);
  wake_.NotifyAll();
}

void Controller::Stop() {
  subscription_.reset();  // first, so that no trigger wakes a thread that is gone
  {
    base::MutexLock lock(&mu_);
    stop_.request_stop();
    wake_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

void Controller::Run() {
  absl::Status turn;
  while (turn.ok() && !stop_.stop_requested()) turn = Turn();
  // Cancelled: Stop cut a retry short; the unsettled messages come again.
  if (turn.ok() || (stop_.stop_requested() && absl::IsCancelled(turn))) return;
  if (events_.on_error) return events_.on_error(turn);
  base::Log(base::kError, "results are not counted any more", {{"why", turn.ToString()}});
}

absl::Status Controller::Turn() {
  MUSTER_RETURN_IF_ERROR(Gather());
  const bool idle = HandIsEmpty();
  MUSTER_RETURN_IF_ERROR(CountAll());
  MUSTER_RETURN_IF_ERROR(CheckAsked());
  if (idle) AwaitWork();
  return absl::OkStatus();
}

absl::Status Controller::Gather() {
  const absl::Duration start = deps_.clock->Monotonic();
  for (;;) {
    {
      base::MutexLock lock(&mu_);
      // Cleared before the look: a message that is put from now on causes another one.
      work_detected_ = false;
    }
    for (const auto& counter : counters_) MUSTER_RETURN_IF_ERROR(counter->Receive());
    if (HandIsEmpty()) return absl::OkStatus();
    MUSTER_ASSIGN_OR_RETURN(const bool time_to_count, IsTimeToCount(start));
    if (time_to_count || !AwaitMore(start + options_.linger)) return absl::OkStatus();
  }
}

absl::StatusOr<bool> Controller::IsTimeToCount(absl::Duration since) {
  if (stop_.stop_requested() || deps_.clock->Monotonic() - since >= options_.linger) return true;
  for (const auto& counter : counters_) {
    if (counter->full()) return true;
    MUSTER_ASSIGN_OR_RETURN(const bool last, counter->HoldsTheLast());
    if (last) return true;
  }
  return false;
}

absl::Status Controller::CountAll() {
  for (const auto& counter : counters_) {
    if (counter->in_hand() > 0) MUSTER_RETURN_IF_ERROR(counter->Count());
  }
  return absl::OkStatus();
}

absl::Status Controller::CheckAsked() {
  std::set<uint64_t> asked;
  {
    base::MutexLock lock(&mu_);
    asked.swap(asked_);
  }
  if (asked.empty()) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(const auto troubles, counters_.front()->CompleteDone(asked));
  base::MutexLock lock(&mu_);
  for (const auto& [batch, why] : troubles) {
    *troubles_.FindOrAdd(batch).first = absl::AbortedError(why.message());
  }
  return absl::OkStatus();
}

void Controller::PrepareOneExpected() {
  uint64_t batch = 0;
  {
    base::MutexLock lock(&mu_);
    if (expected_.empty()) return;
    batch = *expected_.begin();
    expected_.erase(expected_.begin());
  }
  counters_.front()->Prepare(batch);
}

void Controller::AwaitWork() {
  absl::Duration patience = options_.safety_check_interval;
  for (const auto& counter : counters_) {
    patience = std::min(patience, counter->ComesAgainIn());
  }
  const absl::Duration deadline = deps_.clock->Monotonic() + patience;
  for (;;) {
    {
      base::MutexLock lock(&mu_);
      while (!work_detected_ && asked_.empty() && expected_.empty() && !stop_.stop_requested()) {
        if (deps_.clock->WaitUntil(&wake_, &mu_, deadline)) return;
      }
      if (work_detected_ || !asked_.empty() || stop_.stop_requested()) return;
    }
    // One at a time: its ledger may hang, and results come first.
    PrepareOneExpected();
  }
}

// A look in vain is a call of the queue store like any other, so only a trigger causes one.
// The next look, after the commit, finds results whose trigger was lost.
bool Controller::AwaitMore(absl::Duration deadline) {
  base::MutexLock lock(&mu_);
  const absl::Duration pause_ends = deps_.clock->Monotonic() + kGatherPause;
  while (!stop_.stop_requested() && !deps_.clock->WaitUntil(&wake_, &mu_, pause_ends)) continue;
  // Who asks has sealed a batch, of which the last result may be in hand.
  while (!work_detected_ && asked_.empty() && !stop_.stop_requested()) {
    if (deps_.clock->WaitUntil(&wake_, &mu_, deadline)) return false;
  }
  return !stop_.stop_requested();
}

}  // namespace muster::controller
