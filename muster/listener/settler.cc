// SPDX-License-Identifier: Apache-2.0
#include "muster/listener/settler.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/failpoint.h"
#include "muster/base/status.h"
#include "muster/listener/store_results.h"
#include "muster/queue/limits.h"

namespace muster::listener {
namespace {

// Above this size the work of a commit outweighs what it saves.
constexpr size_t kFullCommit = 32;

size_t BytesOf(const std::vector<queue::NewMessage>& messages) {
  size_t bytes = 0;
  for (const queue::NewMessage& message : messages) bytes += message.body.size();
  return bytes;
}

std::vector<absl::Status> StatusesOf(
    const std::vector<absl::StatusOr<queue::UpdateResult>>& results) {
  std::vector<absl::Status> statuses;
  statuses.reserve(results.size());
  for (const auto& result : results) statuses.push_back(result.status());
  return statuses;
}

}  // namespace

Settler::Settler(SettlerOptions options, queue::QueueStore* store, LeaseTable* leases,
                 TriggerSender* triggers, CounterSet* counters, base::Clock* clock)
    : options_(std::move(options)),
      store_(store),
      leases_(leases),
      triggers_(triggers),
      counters_(counters),
      clock_(clock),
      retry_(base::RetryOptions(), clock) {
  if (options_.output_queue) announcer_.emplace(*options_.output_queue, triggers_, clock_);
  base::MutexLock lock(&join_mu_);
  thread_ = std::thread([this] { Run(); });
}

Settler::~Settler() { Cancel(); }

void Settler::Settle(Item item) {
  Items items;
  items.push_back(std::move(item));
  Settle(std::move(items));
}

void Settler::Settle(Items items) {
  {
    base::MutexLock lock(&mu_);
    if (!ended_) {
      const bool was_empty = waiting_.empty();
      std::move(items.begin(), items.end(), std::back_inserter(waiting_));
      if (was_empty || (gathering_ && IsEnoughLocked())) work_.NotifyOne();
      return;
    }
  }
  for (Item& item : items) Abandon(item);
}

bool Settler::Drain(absl::Duration deadline) {
  base::MutexLock lock(&mu_);
  draining_ = true;
  work_.NotifyOne();
  while (!ended_) {
    if (clock_->WaitUntil(&ended_cv_, &mu_, deadline)) return ended_;
  }
  return true;
}

absl::Status Settler::Finish(absl::FunctionRef<bool(absl::Duration deadline)> await_work,
                             absl::Duration deadline, absl::Duration grace) {
  // So that also a store that is away lets the listener end within the grace.
  const absl::Duration last_retry = deadline - std::min(grace / 2, store_->traits().longest_call);
  bool is_settled = await_work(last_retry) && Drain(last_retry);
  if (!is_settled) {
    no_retries_.request_stop();
    is_settled = await_work(deadline) && Drain(deadline);
  }
  if (!is_settled) {
    const absl::Status late = absl::DeadlineExceededError(
        absl::StrCat("stopping took longer than ", absl::FormatDuration(grace), "; ",
                     leases_->unsettled(), " messages are left to their leases"));
    Cancel();
    return late;
  }
  if (!store_is_away_) return absl::OkStatus();
  return absl::UnavailableError(
      "the store did not answer; what was worked on is left to the ends of its leases");
}

void Settler::Cancel() {
  cancelled_.request_stop();
  no_retries_.request_stop();
  Drain(absl::InfiniteDuration());
  base::MutexLock lock(&join_mu_);
  if (thread_.joinable()) thread_.join();
}

void Settler::Run() {
  Items batch;
  while (Take(batch)) {
    Work(batch);
    batch.clear();
    if (announcer_ && !MoreWaits()) announcer_->OnIdle();
  }
}

bool Settler::Take(Items& batch) {
  base::MutexLock lock(&mu_);
  while (waiting_.empty() && !draining_) work_.Wait(&mu_);
  GatherLocked();
  batch.swap(waiting_);
  if (!batch.empty()) return true;
  ended_ = true;
  ended_cv_.NotifyAll();
  return false;
}

// Waits for more items: a commit costs nearly the same for one and for many.
void Settler::GatherLocked() {
  if (options_.linger <= absl::ZeroDuration()) return;
  const absl::Duration deadline = clock_->Monotonic() + options_.linger;
  gathering_ = true;
  while (!draining_ && !IsEnoughLocked()) {
    if (clock_->WaitUntil(&work_, &mu_, deadline)) break;
  }
  gathering_ = false;
}

// True when no other leased message could join, or the commit is so large that more items gain
// little.
bool Settler::IsEnoughLocked() const {
  return waiting_.size() >= kFullCommit ||
         waiting_.size() >= static_cast<size_t>(leases_->leased());
}

bool Settler::MoreWaits() const {
  base::MutexLock lock(&mu_);
  return !waiting_.empty();
}

void Settler::Work(Items& batch) {
  if (cancelled_.stop_requested()) {
    for (Item& item : batch) Abandon(item);
    return;
  }
  DropLost(batch);
  PutOutputs(batch);
  std::vector<Chosen> by_partition(options_.partitions.size());
  for (Item& item : batch) by_partition[item.lease->partition].push_back(&item);
  for (size_t partition = 0; partition < by_partition.size(); ++partition) {
    SettlePartition(static_cast<int>(partition), by_partition[partition]);
  }
}

// Called before the puts: a holder that has lost its lease must not add to the output.
void Settler::DropLost(Items& batch) {
  const auto kept = std::stable_partition(
      batch.begin(), batch.end(), [this](const Item& item) { return !leases_->lost(*item.lease); });
  for (auto item = kept; item != batch.end(); ++item) {
    counters_->Add(&ListenerCounters::stale_settles);
    options_.on_settled(*item->lease, /*in_time=*/false);
    if (item->verdict.on_settled) {
      item->verdict.on_settled(absl::FailedPreconditionError("its lease was lost"));
    }
    leases_->Remove(*item->lease);
  }
  batch.erase(kept, batch.end());
}

void Settler::NoteAnswer(const absl::Status& status) {
  const bool unanswered = base::IsTransient(status) || absl::IsCancelled(status);
  if (unanswered && no_retries_.stop_requested()) store_is_away_ = true;
}

void Settler::PutOutputs(Items& batch) {
  std::vector<queue::NewMessage> chunk;
  size_t chunk_bytes = 0;
  Chosen of;
  const auto flush = [&] {
    if (!chunk.empty()) PutChunk(std::exchange(chunk, {}), of);
    chunk_bytes = 0;
    of.clear();
  };
  for (Item& item : batch) {
    if (item.verdict.outputs.empty()) continue;
    of.push_back(&item);
    for (queue::NewMessage& output : std::exchange(item.verdict.outputs, {})) {
      const size_t bytes = output.body.size() + kPackingBytes;
      if (chunk.size() == queue::kMaxPutMessages || chunk_bytes + bytes > queue::kMaxPutBytes) {
        flush();
        of.push_back(&item);
      }
      chunk_bytes += bytes;
      chunk.push_back(std::move(output));
    }
  }
  flush();
}

void Settler::PutChunk(std::vector<queue::NewMessage> outputs, const Chosen& of) {
  // CheckOutputs refuses outputs where there is no queue for them.
  MUSTER_CHECK(announcer_.has_value(), outputs.size(), " outputs of ", of.size(),
               " messages, and no output queue");
  if (options_.pack_outputs) outputs = options_.pack_outputs(std::move(outputs));
  absl::StatusOr<std::vector<queue::PutResult>> results =
      absl::UnavailableError("the store does not answer");
  if (!store_is_away_) {
    results = retry_.Run(no_retries_.get_token(), [&](const base::RetryAttempt&) {
      counters_->Add(&ListenerCounters::output_puts);
      return store_->Put(*options_.output_queue, outputs);
    });
    NoteAnswer(results.status());
  }
  if (results.ok()) {
    MUSTER_FAILPOINT("listener.after_result_put");
    announcer_->OnPut(static_cast<int64_t>(outputs.size()));
    return;
  }
  options_.on_error(base::Annotate(
      results.status(), absl::StrCat("put of ", outputs.size(), " outputs, ", BytesOf(outputs),
                                     " bytes, into ", options_.output_queue->ToString())));
  for (Item* item : of) GiveBackInstead(*item);
}

// The work was done but its outputs are lost: the next run must not count against the message.
void Settler::GiveBackInstead(Item& item) {
  Verdict& verdict = item.verdict;
  verdict.action = Verdict::Action::kGiveBack;
  verdict.delay = options_.put_failed_delay;
  verdict.attempt_ended = leases_->charged(*item.lease);
  verdict.refund_attempt = verdict.attempt_ended;
  verdict.counter = &ListenerCounters::messages_deferred;
}

void Settler::SettlePartition(int partition, const Chosen& items) {
  Chosen by_action[3];
  for (Item* item : items) by_action[static_cast<int>(item->verdict.action)].push_back(item);
  const auto in_batches = [&](Verdict::Action action, void (Settler::*settle)(int, const Chosen&)) {
    const Chosen& all = by_action[static_cast<int>(action)];
    for (size_t begin = 0; begin < all.size(); begin += queue::kMaxSettle) {
      const size_t end = std::min(all.size(), begin + queue::kMaxSettle);
      (this->*settle)(partition, Chosen(all.begin() + begin, all.begin() + end));
    }
  };
  in_batches(Verdict::Action::kDelete, &Settler::Delete);
  in_batches(Verdict::Action::kDeadLetter, &Settler::DeadLetter);
  in_batches(Verdict::Action::kGiveBack, &Settler::GiveBack);
}

void Settler::SettleBy(const Chosen& items, int64_t ListenerCounters::*transaction, Call call) {
  if (store_is_away_) {  // a lease cannot even be pinned before its renewal has ended
    for (Item* item : items) Abandon(*item);
    return;
  }
  Chosen ours;
  std::vector<queue::Receipt> receipts;
  for (Item* item : items) {
    absl::StatusOr<queue::Receipt> receipt = leases_->PinForSettle(*item->lease);
    if (!receipt.ok()) {
      Count(*item, receipt.status());
      continue;
    }
    ours.push_back(item);
    receipts.push_back(*std::move(receipt));
  }
  if (ours.empty()) return;
  const auto statuses = CheckSize(retry_.Run(no_retries_.get_token(),
                                             [&](const base::RetryAttempt&) {
                                               counters_->Add(transaction);
                                               return call(ours, receipts);
                                             }),
                                  ours.size());
  NoteAnswer(statuses.status());
  if (const absl::Status error = FirstError(statuses); !error.ok()) {
    options_.on_error(base::Annotate(error, "settling"));
  }
  for (size_t i = 0; i < ours.size(); ++i) {
    Count(*ours[i], statuses.ok() ? (*statuses)[i] : statuses.status());
  }
}

void Settler::Delete(int partition, const Chosen& items) {
  SettleBy(items, &ListenerCounters::deletes,
           [&](const Chosen&, const std::vector<queue::Receipt>& receipts) {
             return store_->Delete(options_.partitions[partition], receipts);
           });
  MUSTER_FAILPOINT("listener.after_delete");
}

void Settler::DeadLetter(int partition, const Chosen& items) {
  MUSTER_FAILPOINT("listener.before_dead_letter");
  SettleBy(items, &ListenerCounters::dead_letter_calls,
           [&](const Chosen& ours, const std::vector<queue::Receipt>& receipts) {
             std::vector<queue::DeadLetterRequest> requests(ours.size());
             for (size_t i = 0; i < ours.size(); ++i) {
               requests[i].receipt = receipts[i];
               requests[i].cause = CauseOf(*ours[i]);
               requests[i].kind = ours[i]->verdict.kind;
             }
             return store_->DeadLetter(options_.partitions[partition], requests);
           });
  MUSTER_FAILPOINT("listener.after_dead_letter");
}

queue::Cause Settler::CauseOf(const Item& item) const {
  queue::Cause cause;
  cause.reason = item.verdict.why;
  cause.attempts = item.attempts;
  cause.holder = options_.holder;
  cause.time = clock_->Now();
  return cause;
}

void Settler::GiveBack(int partition, const Chosen& items) {
  const queue::QueueId& queue = options_.partitions[partition];
  SettleBy(items, &ListenerCounters::give_backs,
           [&](const Chosen& ours, const std::vector<queue::Receipt>& receipts)
               -> absl::StatusOr<std::vector<absl::Status>> {
             std::vector<queue::UpdateRequest> requests(ours.size());
             for (size_t i = 0; i < ours.size(); ++i) {
               requests[i].receipt = receipts[i];
               requests[i].visibility = ours[i]->verdict.delay;
               requests[i].attempt_ended = ours[i]->verdict.attempt_ended;
               requests[i].refund_attempt = ours[i]->verdict.refund_attempt;
             }
             MUSTER_ASSIGN_OR_RETURN(const auto results, store_->Update(queue, requests));
             return StatusesOf(results);
           });
  MUSTER_FAILPOINT("listener.after_give_back");
  AnnounceGivenBack(queue, items);
}

// Messages that are visible at once are work for other listeners too.
void Settler::AnnounceGivenBack(const queue::QueueId& queue, const Chosen& items) {
  const auto at_once = std::count_if(items.begin(), items.end(), [](const Item* item) {
    return item->verdict.delay <= absl::ZeroDuration();
  });
  if (at_once > 0) triggers_->Send(queue, at_once);
}

void Settler::Count(Item& item, const absl::Status& status) {
  if (status.ok()) {
    counters_->Add(item.verdict.counter);
  } else if (IsStale(status)) {
    counters_->Add(&ListenerCounters::stale_settles);
    leases_->CountLost(*item.lease);
  } else {
    Abandon(item);
    return;
  }
  // Schedule the next look while the lease still counts, so that at every moment there is a reason
  // to look again.
  if (item.verdict.action == Verdict::Action::kGiveBack) TellWhenVisible(item);
  options_.on_settled(*item.lease, status.ok());
  if (item.verdict.on_settled) item.verdict.on_settled(status);
  leases_->Remove(*item.lease);
}

void Settler::TellWhenVisible(const Item& item) {
  const Verdict& verdict = item.verdict;
  if (verdict.wanted.empty()) {
    options_.on_delayed(verdict.delay);
  } else {
    options_.on_left_to_others(options_.partitions[item.lease->partition], verdict.wanted,
                               verdict.delay);
  }
}

void Settler::Abandon(Item& item) {
  counters_->Add(&ListenerCounters::abandoned);
  if (item.verdict.on_settled) {
    item.verdict.on_settled(absl::UnavailableError("left to the end of its lease"));
  }
  options_.on_delayed(item.lease->visibility);
  leases_->Remove(*item.lease);
}

}  // namespace muster::listener
