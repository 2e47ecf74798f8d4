// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/listener/memory_store.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/check.h"
#include "muster/base/status.h"

namespace muster::listener::testing {
namespace {

absl::Status Unneeded() { return absl::UnimplementedError("not needed by listeners"); }

absl::Status Stale() { return absl::FailedPreconditionError("the receipt is stale"); }

}  // namespace

class MemoryStore::Call {
 public:
  Call(MemoryStore* store, Verb verb, const queue::QueueId& queue)
      : store_(store), verb_(verb), queue_(queue) {
    Hook hook;
    {
      base::MutexLock lock(&store_->mu_);
      hook = store_->hook_;
    }
    if (hook) status_ = hook(verb, queue);
  }
  ~Call() {
    AfterHook hook;
    {
      base::MutexLock lock(&store_->mu_);
      hook = store_->after_hook_;
    }
    if (hook) hook(verb_, queue_);
    base::MutexLock lock(&store_->mu_);
    ++store_->calls_[static_cast<int>(verb_)];
    store_->changed_.NotifyAll();
  }
  const absl::Status& status() const { return status_; }

 private:
  MemoryStore* const store_;
  const Verb verb_;
  const queue::QueueId queue_;
  absl::Status status_;
};

MemoryStore::MemoryStore(base::Clock* clock) : clock_(clock) {
  traits_.engine = "memory";
  traits_.fenced_receipts = true;
  traits_.delayed_put = true;
  traits_.per_receive_visibility = true;
  traits_.exact_stats = true;
}

void MemoryStore::SetHook(Hook hook) {
  base::MutexLock lock(&mu_);
  hook_ = std::move(hook);
}

void MemoryStore::SetAfterHook(AfterHook hook) {
  base::MutexLock lock(&mu_);
  after_hook_ = std::move(hook);
}

void MemoryStore::SetMessageHooks(MessageHook before, MessageHook after) {
  base::MutexLock lock(&mu_);
  before_message_ = std::move(before);
  after_message_ = std::move(after);
}

int MemoryStore::calls(Verb verb) const {
  base::MutexLock lock(&mu_);
  return calls_[static_cast<int>(verb)];
}

void MemoryStore::AwaitCalls(Verb verb, int n) const {
  base::MutexLock lock(&mu_);
  while (calls_[static_cast<int>(verb)] < n) changed_.Wait(&mu_);
}

void MemoryStore::AwaitDeleted(const queue::QueueId& queue, int n) const {
  base::MutexLock lock(&mu_);
  while (Find(queue) == nullptr || static_cast<int>(Find(queue)->deleted.size()) < n) {
    changed_.Wait(&mu_);
  }
}

void MemoryStore::AwaitPoison(const queue::QueueId& queue, int n) const {
  base::MutexLock lock(&mu_);
  while (Find(queue) == nullptr || static_cast<int>(Find(queue)->poison.size()) < n) {
    changed_.Wait(&mu_);
  }
}

std::vector<std::string> MemoryStore::put(const queue::QueueId& queue) const {
  base::MutexLock lock(&mu_);
  return Find(queue) == nullptr ? std::vector<std::string>() : Find(queue)->put;
}

std::vector<std::string> MemoryStore::deleted(const queue::QueueId& queue) const {
  base::MutexLock lock(&mu_);
  return Find(queue) == nullptr ? std::vector<std::string>() : Find(queue)->deleted;
}

void MemoryStore::BreakLeases(const queue::QueueId& id) {
  base::MutexLock lock(&mu_);
  Queue& queue = Of(id);
  for (auto& [sequence, record] : queue.records) {
    record.lease = next_lease_++;
    MoveTo(queue, sequence, record, clock_->Monotonic());
  }
}

absl::StatusOr<std::vector<queue::PutResult>> MemoryStore::Put(
    const queue::QueueId& id, absl::Span<const queue::NewMessage> messages) {
  const Call call(this, Verb::kPut, id);
  MUSTER_RETURN_IF_ERROR(call.status());
  std::vector<queue::PutResult> results;
  const absl::Duration now = clock_->Monotonic();
  base::MutexLock lock(&mu_);
  Queue& queue = Of(id);
  for (const queue::NewMessage& message : messages) {
    const uint64_t sequence = next_sequence_++;
    queue.put.push_back(message.body);
    Record& record = queue.records[sequence];
    record.message.message_id = absl::StrCat("m", sequence);
    record.message.body = message.body;
    record.message.position = sequence;
    record.visible_at = now + message.delay;
    queue.by_visibility.insert({record.visible_at, sequence});
    queue::PutResult& result = results.emplace_back();
    result.message_id = record.message.message_id;
    result.receipt = NewReceipt(sequence, record);
  }
  return results;
}

absl::StatusOr<std::vector<queue::Message>> MemoryStore::Receive(
    const queue::QueueId& id, const queue::ReceiveOptions& options) {
  const Call call(this, Verb::kReceive, id);
  MUSTER_RETURN_IF_ERROR(call.status());
  std::vector<queue::Message> messages;
  const absl::Duration now = clock_->Monotonic();
  base::MutexLock lock(&mu_);
  Queue& queue = Of(id);
  while (static_cast<int>(messages.size()) < options.max_messages && !queue.by_visibility.empty() &&
         queue.by_visibility.begin()->first <= now) {
    const uint64_t sequence = queue.by_visibility.begin()->second;
    Record& record = queue.records.at(sequence);
    MoveTo(queue, sequence, record, now + options.visibility);
    ++record.message.dequeue_count;
    record.suspect = record.suspect || record.began;
    record.began = false;
    record.message.interrupted = record.suspect;
    record.message.next_visible_time = clock_->Now() + options.visibility;
    messages.push_back(record.message);
    messages.back().receipt = NewReceipt(sequence, record);
  }
  return messages;
}

absl::StatusOr<std::vector<absl::StatusOr<int>>> MemoryStore::BeginAttempt(
    const queue::QueueId& id, absl::Span<const queue::Receipt> receipts) {
  const Call call(this, Verb::kBeginAttempt, id);
  MUSTER_RETURN_IF_ERROR(call.status());
  std::vector<absl::StatusOr<int>> results;
  const absl::Duration now = clock_->Monotonic();
  base::MutexLock lock(&mu_);
  for (const queue::Receipt& receipt : receipts) {
    uint64_t sequence = 0;
    absl::StatusOr<Record*> record = Resolve(Verb::kBeginAttempt, Of(id), receipt, sequence);
    if (record.ok() && (*record)->visible_at <= now) record = Stale();
    if (!record.ok()) {
      results.push_back(record.status());
      continue;
    }
    (*record)->began = true;
    ++(*record)->message.attempts;
    const absl::Status answer = Answer(Verb::kBeginAttempt, (*record)->message.body);
    if (answer.ok()) {
      results.push_back((*record)->message.attempts);
    } else {
      results.push_back(answer);
    }
  }
  return results;
}

absl::StatusOr<std::vector<absl::StatusOr<queue::UpdateResult>>> MemoryStore::Update(
    const queue::QueueId& id, absl::Span<const queue::UpdateRequest> requests) {
  const Call call(this, Verb::kUpdate, id);
  MUSTER_RETURN_IF_ERROR(call.status());
  std::vector<absl::StatusOr<queue::UpdateResult>> results;
  const absl::Duration now = clock_->Monotonic();
  base::MutexLock lock(&mu_);
  for (const queue::UpdateRequest& request : requests) {
    Queue& queue = Of(id);
    uint64_t sequence = 0;
    const absl::StatusOr<Record*> found = Resolve(Verb::kUpdate, queue, request.receipt, sequence);
    if (!found.ok()) {
      results.push_back(found.status());
      continue;
    }
    Record& record = **found;
    if (request.attempt_ended && record.began) {
      if (request.refund_attempt) --record.message.attempts;
      record.began = false;
      record.suspect = false;
    }
    MoveTo(queue, sequence, record, now + request.visibility);
    queue::UpdateResult result;
    result.receipt = NewReceipt(sequence, record);
    const absl::Status answer = Answer(Verb::kUpdate, record.message.body);
    if (answer.ok()) {
      results.push_back(std::move(result));
    } else {
      results.push_back(answer);
    }
  }
  return results;
}

absl::StatusOr<std::vector<absl::Status>> MemoryStore::Delete(
    const queue::QueueId& id, absl::Span<const queue::Receipt> receipts) {
  const Call call(this, Verb::kDelete, id);
  MUSTER_RETURN_IF_ERROR(call.status());
  std::vector<absl::Status> results;
  base::MutexLock lock(&mu_);
  for (const queue::Receipt& receipt : receipts) {
    Queue& queue = Of(id);
    uint64_t sequence = 0;
    const absl::StatusOr<Record*> record = Resolve(Verb::kDelete, queue, receipt, sequence);
    if (!record.ok()) {
      results.push_back(record.status());
      continue;
    }
    queue.deleted.push_back((*record)->message.body);
    Erase(queue, sequence);
    results.push_back(Answer(Verb::kDelete, queue.deleted.back()));
  }
  return results;
}

absl::StatusOr<std::vector<absl::Status>> MemoryStore::DeadLetter(
    const queue::QueueId& id, absl::Span<const queue::DeadLetterRequest> requests) {
  const Call call(this, Verb::kDeadLetter, id);
  MUSTER_RETURN_IF_ERROR(call.status());
  std::vector<absl::Status> results;
  base::MutexLock lock(&mu_);
  for (const queue::DeadLetterRequest& request : requests) {
    Queue& queue = Of(id);
    uint64_t sequence = 0;
    const absl::StatusOr<Record*> record =
        Resolve(Verb::kDeadLetter, queue, request.receipt, sequence);
    if (!record.ok()) {
      results.push_back(record.status());
      continue;
    }
    queue.poison.push_back({.message_id = (*record)->message.message_id,
                            .body = (*record)->message.body,
                            .insertion_time = {},
                            .cause = request.cause});
    Erase(queue, sequence);
    results.push_back(Answer(Verb::kDeadLetter, queue.poison.back().body));
  }
  return results;
}

absl::StatusOr<std::vector<queue::PoisonMessage>> MemoryStore::ListPoison(const queue::QueueId& id,
                                                                          absl::string_view, int) {
  base::MutexLock lock(&mu_);
  return Of(id).poison;
}

absl::StatusOr<std::vector<std::optional<queue::PoisonMessage>>> MemoryStore::FindPoison(
    const queue::QueueId&, absl::Span<const queue::PoisonName>) {
  return Unneeded();
}

void MemoryStore::BlurStats() { traits_.exact_stats = false; }

void MemoryStore::BeginTogether() { traits_.begins_together = true; }

absl::StatusOr<queue::QueueStats> MemoryStore::Stats(const queue::QueueId& id) {
  const Call call(this, Verb::kStats, id);
  MUSTER_RETURN_IF_ERROR(call.status());
  queue::QueueStats stats;
  const absl::Duration now = clock_->Monotonic();
  base::MutexLock lock(&mu_);
  const Queue& queue = Of(id);
  const auto hidden = queue.by_visibility.upper_bound({now, ~uint64_t{0}});
  stats.ready = std::distance(queue.by_visibility.begin(), hidden);
  if (!traits_.exact_stats) {
    stats.ready = std::count_if(queue.records.begin(), queue.records.end(), [](const auto& record) {
      return record.second.message.dequeue_count == 0;
    });
  }
  stats.in_flight = static_cast<int64_t>(queue.records.size()) - stats.ready;
  stats.poison = static_cast<int64_t>(queue.poison.size());
  return stats;
}

absl::StatusOr<queue::QueueExtent> MemoryStore::Extent(const queue::QueueId&) { return Unneeded(); }

absl::StatusOr<std::vector<queue::StoredMessage>> MemoryStore::Scan(const queue::QueueId&, uint64_t,
                                                                    int) {
  return Unneeded();
}

absl::StatusOr<uint64_t> MemoryStore::Reclaim(const queue::QueueId& id) {
  base::MutexLock lock(&mu_);
  Queue& queue = Of(id);
  for (auto& [sequence, record] : queue.records) {
    record.lease = next_lease_++;
    MoveTo(queue, sequence, record, -absl::InfiniteDuration());
  }
  return 0;
}

absl::Status MemoryStore::CreateQueue(const queue::QueueId&, const queue::Metadata&) {
  return Unneeded();
}
absl::Status MemoryStore::DeleteQueue(const queue::QueueId&) { return Unneeded(); }
absl::StatusOr<std::vector<queue::QueueInfo>> MemoryStore::ListQueues(
    const queue::ListQueuesRequest&) {
  return Unneeded();
}
absl::StatusOr<queue::Metadata> MemoryStore::GetMetadata(const queue::QueueId&) {
  return Unneeded();
}
absl::Status MemoryStore::SetMetadata(const queue::QueueId&, const queue::Metadata&) {
  return Unneeded();
}
absl::StatusOr<std::vector<queue::Message>> MemoryStore::Peek(const queue::QueueId&, int) {
  return Unneeded();
}
absl::Status MemoryStore::Clear(const queue::QueueId&) { return Unneeded(); }
// At their old positions, as the embedded engine does.
absl::StatusOr<int64_t> MemoryStore::Redrive(const queue::QueueId& id,
                                             absl::Span<const std::string>, int64_t) {
  const absl::Duration now = clock_->Monotonic();
  base::MutexLock lock(&mu_);
  Queue& queue = Of(id);
  for (const queue::PoisonMessage& poison : queue.poison) {
    uint64_t sequence = 0;
    MUSTER_CHECK(absl::SimpleAtoi(poison.message_id.substr(1), &sequence), poison.message_id);
    Record& record = queue.records[sequence];
    record.message.message_id = poison.message_id;
    record.message.body = poison.body;
    record.message.position = sequence;
    record.visible_at = now;
    queue.by_visibility.insert({now, sequence});
  }
  return static_cast<int64_t>(std::exchange(queue.poison, {}).size());
}
absl::StatusOr<int64_t> MemoryStore::PurgePoison(const queue::QueueId& id) {
  base::MutexLock lock(&mu_);
  return static_cast<int64_t>(std::exchange(Of(id).poison, {}).size());
}

absl::StatusOr<int64_t> MemoryStore::DropPoison(const queue::QueueId&,
                                                absl::Span<const std::string>) {
  return Unneeded();
}

MemoryStore::Queue& MemoryStore::Of(const queue::QueueId& queue) {
  return queues_[{queue.account, queue.name}];
}

const MemoryStore::Queue* MemoryStore::Find(const queue::QueueId& queue) const {
  const auto found = queues_.find({queue.account, queue.name});
  return found == queues_.end() ? nullptr : &found->second;
}

absl::StatusOr<MemoryStore::Record*> MemoryStore::Resolve(Verb verb, Queue& queue,
                                                          const queue::Receipt& receipt,
                                                          uint64_t& sequence) {
  const std::vector<std::string> parts = absl::StrSplit(receipt, '.');
  uint64_t lease = 0;
  if (parts.size() != 2 || !absl::SimpleAtoi(parts[0], &sequence) ||
      !absl::SimpleAtoi(parts[1], &lease)) {
    return absl::InvalidArgumentError("that is no receipt");
  }
  const auto found = queue.records.find(sequence);
  if (found == queue.records.end()) return absl::NotFoundError("no such message");
  Record& record = found->second;
  if (record.lease != lease) return Stale();
  if (before_message_) MUSTER_RETURN_IF_ERROR(before_message_(verb, record.message.body));
  return &record;
}

absl::Status MemoryStore::Answer(Verb verb, const std::string& body) {
  return after_message_ ? after_message_(verb, body) : absl::OkStatus();
}

void MemoryStore::MoveTo(Queue& queue, uint64_t sequence, Record& record,
                         absl::Duration visible_at) {
  queue.by_visibility.erase({record.visible_at, sequence});
  record.visible_at = visible_at;
  queue.by_visibility.insert({visible_at, sequence});
}

queue::Receipt MemoryStore::NewReceipt(uint64_t sequence, Record& record) {
  record.lease = next_lease_++;
  return absl::StrCat(sequence, ".", record.lease);
}

void MemoryStore::Erase(Queue& queue, uint64_t sequence) {
  queue.by_visibility.erase({queue.records.at(sequence).visible_at, sequence});
  queue.records.erase(sequence);
}

}  // namespace muster::listener::testing
