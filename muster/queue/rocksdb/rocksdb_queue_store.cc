// SPDX-License-Identifier: Apache-2.0
#include "muster/queue/rocksdb/rocksdb_queue_store.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/log.h"
#include "muster/base/status.h"
#include "muster/queue/limits.h"
#include "muster/queue/rocksdb/codec.h"
#include "muster/queue/rocksdb/durable_queue.h"
#include "muster/queue/rocksdb/load_queues.h"
#include "muster/queue/rocksdb/storage.h"
#include "muster/rocksdb/database.h"
#include "rocksdb/write_batch.h"

namespace muster::queue::rocksdb {

namespace {

queue::Traits EngineTraits() {
  queue::Traits traits;
  traits.engine = "rocksdb";
  traits.ack_survives = queue::Survives::kPower;
  traits.fenced_receipts = true;
  traits.per_message_ttl = true;
  traits.delayed_put = true;
  traits.dedup = true;
  traits.body_update = true;
  traits.per_receive_visibility = true;
  traits.exact_stats = true;
  traits.keeps_ids = true;
  traits.moves = true;
  traits.joins_queues = true;
  traits.max_receive = queue::kMaxReceive;
  return traits;
}

// Writes the record of the queue, and the store record with the next number, in one synced batch.
absl::Status WriteNewQueue(Storage* storage, uint64_t number, const QueueRecord& record) {
  ::rocksdb::WriteBatch batch;
  const std::string key = QueueKey(number);
  batch.Put(storage->family(kMeta), key, EncodeQueue(record, key));
  batch.Put(storage->family(kMeta), StoreKey(), EncodeStore(storage->record()));
  return storage->Write(&batch, muster::rocksdb::Durability::kPower);
}

}  // namespace

absl::StatusOr<std::unique_ptr<RocksDbQueueStore>> RocksDbQueueStore::Open(const std::string& dir,
                                                                           const Options& options) {
  muster::rocksdb::DatabaseOptions database;
  database.read_only = options.read_only;
  database.env = options.env;
  database.on_failure = options.on_failure;
  database.metrics = options.metrics;
  MUSTER_ASSIGN_OR_RETURN(auto storage,
                          Storage::Open(dir, database, options.clock,
                                        /*keeps_leases=*/!options.holders_in_process));
  MUSTER_ASSIGN_OR_RETURN(LoadedQueues queues,
                          LoadQueues(storage.get(), options.holders_in_process));
  std::unique_ptr<RocksDbQueueStore> store(new RocksDbQueueStore(std::move(storage)));
  {
    base::MutexLock lock(&store->mu_);
    for (auto& [number, queue] : queues) {
      store->queues_[{queue->id().account, queue->id().name}] = std::move(queue);
    }
  }
  store->BeginToCollect(options);
  return store;
}

void RocksDbQueueStore::BeginToCollect(const Options& options) {
  {
    base::MutexLock lock(&collect_mu_);
    const Gone count = CountGone();
    care_ = CompactionCare(count.gone, count.stored);
  }
  if (options.read_only || options.collect_interval <= absl::ZeroDuration()) return;
  collector_ = std::make_unique<Collector>(
      options.clock, options.collect_interval, [this](std::atomic<bool>* cancelled) {
        const absl::Status collected = CollectExpired(cancelled);
        if (absl::IsCancelled(collected)) return;
        base::LogUnlessOk(base::kWarning, "the space of expired messages is not given back yet",
                          collected);
      });
}

std::vector<RocksDbQueueStore::QueuePtr> RocksDbQueueStore::Queues() {
  base::MutexLock lock(&mu_);
  std::vector<QueuePtr> queues;
  for (const auto& [name, queue] : queues_) queues.push_back(queue);
  return queues;
}

RocksDbQueueStore::Gone RocksDbQueueStore::CountGone() {
  Gone count;
  for (const QueuePtr& queue : Queues()) {
    const absl::StatusOr<queue::QueueStats> stats = queue->Stats();
    if (!stats.ok()) continue;  // it was deleted meanwhile
    count.stored += stats->stored() + stats->poison;
    count.gone += stats->total_in - stats->stored() - stats->poison;
  }
  return count;
}

absl::Status RocksDbQueueStore::CollectExpired(std::atomic<bool>* cancelled) {
  MUSTER_RETURN_IF_ERROR(storage_->CheckWritable());
  base::MutexLock lock(&collect_mu_);
  for (const QueuePtr& queue : Queues()) {
    if (*cancelled) return absl::CancelledError("the store closes");
    queue->Collect(*cancelled);
  }
  const Gone count = CountGone();
  if (!care_.IsDue(count.gone, count.stored)) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(storage_->Compact(cancelled));
  care_.Done(count.gone, count.stored);
  return absl::OkStatus();
}

RocksDbQueueStore::RocksDbQueueStore(std::unique_ptr<Storage> storage)
    : traits_(EngineTraits()), storage_(std::move(storage)) {}

RocksDbQueueStore::~RocksDbQueueStore() = default;

absl::StatusOr<RocksDbQueueStore::QueuePtr> RocksDbQueueStore::Find(const queue::QueueId& id) {
  MUSTER_RETURN_IF_ERROR(queue::ValidateQueueId(id));
  base::MutexLock lock(&mu_);
  const auto found = queues_.find({id.account, id.name});
  if (found == queues_.end()) {
    return absl::NotFoundError(absl::StrCat("there is no queue '", id.ToString(), "'"));
  }
  return found->second;
}

absl::StatusOr<RocksDbQueueStore::QueuePtr> RocksDbQueueStore::FindWritable(
    const queue::QueueId& id) {
  MUSTER_RETURN_IF_ERROR(storage_->CheckWritable());
  return Find(id);
}

absl::Status RocksDbQueueStore::CreateQueue(const queue::QueueId& id,
                                            const queue::Metadata& metadata) {
  MUSTER_RETURN_IF_ERROR(storage_->CheckWritable());
  MUSTER_RETURN_IF_ERROR(queue::ValidateQueueId(id));
  MUSTER_RETURN_IF_ERROR(queue::ValidateMetadata(metadata));
  base::MutexLock admin(&admin_mu_);
  const absl::StatusOr<QueuePtr> existing = Find(id);
  if (existing.ok()) {
    if ((*existing)->metadata() == metadata) return absl::OkStatus();
    return absl::AlreadyExistsError(
        absl::StrCat("queue '", id.ToString(), "' exists with other metadata"));
  }
  const uint64_t number = storage_->record().next_queue;
  if (number > kMaxQueueNumber) {
    return absl::ResourceExhaustedError("the store has used up its queue numbers");
  }
  ++storage_->record().next_queue;
  const QueueRecord record{id, metadata, 0};
  MUSTER_RETURN_IF_ERROR(WriteNewQueue(storage_.get(), number, record));
  base::MutexLock lock(&mu_);
  const bool is_new = queues_
                          .try_emplace({id.account, id.name}, std::make_shared<DurableQueue>(
                                                                  storage_.get(), number, record))
                          .second;
  MUSTER_CHECK(is_new, "queue '", id.ToString(), "', number ", number);
  return absl::OkStatus();
}

absl::Status RocksDbQueueStore::DeleteQueue(const queue::QueueId& id) {
  base::MutexLock admin(&admin_mu_);
  MUSTER_ASSIGN_OR_RETURN(const QueuePtr queue, FindWritable(id));
  MUSTER_RETURN_IF_ERROR(queue->Destroy());
  base::MutexLock lock(&mu_);
  const size_t erased = queues_.erase({id.account, id.name});
  MUSTER_CHECK(erased == 1, "queue '", id.ToString(), "'");
  return absl::OkStatus();
}

absl::StatusOr<std::vector<queue::QueueInfo>> RocksDbQueueStore::ListQueues(
    const queue::ListQueuesRequest& request) {
  MUSTER_RETURN_IF_ERROR(queue::ValidateListQueues(request));
  std::vector<queue::QueueInfo> infos;
  base::MutexLock lock(&mu_);
  const std::string& from = std::max(request.prefix, request.after);
  for (auto it = queues_.lower_bound({request.account, from});
       it != queues_.end() && it->first.first == request.account; ++it) {
    const std::string& name = it->first.second;
    if (infos.size() == static_cast<size_t>(request.max_results)) break;
    if (name <= request.after && !request.after.empty()) continue;
    if (!absl::StartsWith(name, request.prefix)) {
      if (name > request.prefix) break;
      continue;
    }
    infos.push_back({{request.account, name}, it->second->metadata()});
  }
  return infos;
}

absl::StatusOr<queue::Metadata> RocksDbQueueStore::GetMetadata(const queue::QueueId& id) {
  MUSTER_ASSIGN_OR_RETURN(const QueuePtr queue, Find(id));
  return queue->metadata();
}

absl::Status RocksDbQueueStore::SetMetadata(const queue::QueueId& id,
                                            const queue::Metadata& metadata) {
  MUSTER_RETURN_IF_ERROR(queue::ValidateMetadata(metadata));
  MUSTER_ASSIGN_OR_RETURN(const QueuePtr queue, FindWritable(id));
  return queue->SetMetadata(metadata);
}

template <typename Steps, typename Answer, typename Item, typename Check>
std::vector<absl::StatusOr<Answer>> RocksDbQueueStore::Join(
    absl::Span<const queue::ForQueue<Item>> asked, Check check) {
  struct Part {
    size_t place;
    QueuePtr queue;
  };
  std::vector<absl::StatusOr<Answer>> answers(asked.size(), Answer());
  std::vector<Part> parts;
  for (size_t i = 0; i < asked.size(); ++i) {
    const absl::Status checked = check(asked[i].items);
    absl::StatusOr<QueuePtr> queue = checked.ok() ? FindWritable(asked[i].queue) : checked;
    if (queue.ok()) {
      parts.push_back({i, *std::move(queue)});
    } else {
      answers[i] = queue.status();
    }
  }
  std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
    return std::make_pair(a.queue->number(), a.place) < std::make_pair(b.queue->number(), b.place);
  });

  // All are entered before the first is planned, so that no message is checked out while this call
  // waits for another queue.
  std::deque<Steps> steps;
  std::vector<size_t> places;
  for (size_t i = 0; i < parts.size(); ++i) {
    const size_t place = parts[i].place;
    if (i > 0 && parts[i].queue == parts[i - 1].queue) {
      answers[place] = absl::InvalidArgumentError(
          absl::StrCat("queue '", asked[place].queue.ToString(), "' is named twice"));
      continue;
    }
    steps.emplace_back(parts[i].queue.get(), asked[place].items);
    places.push_back(place);
  }

  ::rocksdb::WriteBatch batch;
  auto durability = muster::rocksdb::Durability::kProcess;
  std::vector<size_t> planned;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (const absl::Status refused = steps[i].Plan(&batch); !refused.ok()) {
      answers[places[i]] = refused;
      continue;
    }
    durability = std::max(durability, steps[i].durability());
    planned.push_back(i);
  }
  if (planned.empty()) return answers;
  const absl::Status written = storage_->WriteAny(&batch, durability);
  for (const size_t i : planned) answers[places[i]] = steps[i].Finish(written);
  return answers;
}

absl::StatusOr<std::vector<queue::PutResult>> RocksDbQueueStore::Put(
    const queue::QueueId& id, absl::Span<const queue::NewMessage> messages) {
  MUSTER_RETURN_IF_ERROR(queue::ValidatePut(messages));
  MUSTER_ASSIGN_OR_RETURN(const QueuePtr queue, FindWritable(id));
  return queue->Put(messages);
}

std::vector<absl::StatusOr<std::vector<queue::PutResult>>> RocksDbQueueStore::PutEach(
    absl::Span<const queue::ForQueue<queue::NewMessage>> puts) {
  auto results = Join<DurableQueue::PutSteps, std::vector<queue::PutResult>>(
      puts, [](absl::Span<const queue::NewMessage> messages) { return ValidatePut(messages); });
  for (size_t i = 0; i < puts.size(); ++i) {
    if (!results[i].ok()) continue;
    const absl::StatusOr<QueuePtr> queue = Find(puts[i].queue);
    if (queue.ok()) (*queue)->SweepDedupIfDue(puts[i].items);
  }
  return results;
}

absl::StatusOr<std::vector<queue::Message>> RocksDbQueueStore::Receive(
    const queue::QueueId& id, const queue::ReceiveOptions& options) {
  MUSTER_RETURN_IF_ERROR(queue::ValidateReceive(options, traits_));
  MUSTER_ASSIGN_OR_RETURN(const QueuePtr queue, FindWritable(id));
  return queue->Receive(options);
}

absl::StatusOr<std::vector<queue::Message>> RocksDbQueueStore::Peek(const queue::QueueId& id,
                                                                    int max_messages) {
  MUSTER_RETURN_IF_ERROR(queue::ValidateReceiveCount(max_messages, traits_));
  MUSTER_ASSIGN_OR_RETURN(const QueuePtr queue, Find(id));
  return queue->Peek(max_messages);
}

absl::StatusOr<std::vector<absl::StatusOr<int>>> RocksDbQueueStore::BeginAttempt(
    const queue::QueueId& id, absl::Span<const queue::Receipt> receipts) {
  MUSTER_RETURN_IF_ERROR(queue::ValidateSettle(receipts.size()));
  MUSTER_ASSIGN_OR_RETURN(const QueuePtr queue, FindWritable(id));
  return queue->BeginAttempt(receipts);
}

absl::StatusOr<std::vector<absl::StatusOr<queue::UpdateResult>>> RocksDbQueueStore::Update(
    const queue::QueueId& id, absl::Span<const queue::UpdateRequest> requests) {
  MUSTER_RETURN_IF_ERROR(queue::ValidateSettle(requests.size()));
  for (const queue::UpdateRequest& request : requests) {
    MUSTER_RETURN_IF_ERROR(queue::ValidateUpdate(request));
  }
  MUSTER_ASSIGN_OR_RETURN(const QueuePtr queue, FindWritable(id));
  return queue->Update(requests);
}

absl::StatusOr<std::vector<absl::Status>> RocksDbQueueStore::Delete(
    const queue::QueueId& id, absl::Span<const queue::Receipt> receipts) {
  MUSTER_RETURN_IF_ERROR(queue::ValidateSettle(receipts.size()));
  MUSTER_ASSIGN_OR_RETURN(const QueuePtr queue, FindWritable(id));
  return queue->Delete(receipts);
}

std::vector<absl::StatusOr<std::vector<absl::Status>>> RocksDbQueueStore::DeleteEach(
    absl::Span<const queue::ForQueue<queue::Receipt>> deletes) {
  return Join<DurableQueue::DeleteSteps, std::vector<absl::Status>>(
      deletes,
      [](absl::Span<const queue::Receipt> receipts) { return ValidateSettle(receipts.size()); });
}

absl::Status RocksDbQueueStore::Clear(const queue::QueueId& id) {
  MUSTER_ASSIGN_OR_RETURN(const QueuePtr queue, FindWritable(id));
  return queue->Clear();
}

absl::StatusOr<std::vector<absl::Status>> RocksDbQueueStore::DeadLetter(
    const queue::QueueId& id, absl::Span<const queue::DeadLetterRequest> requests) {
  MUSTER_RETURN_IF_ERROR(queue::ValidateSettle(requests.size()));
  MUSTER_ASSIGN_OR_RETURN(const QueuePtr queue, FindWritable(id));
  return queue->DeadLetter(requests);
}

absl::StatusOr<std::vector<queue::PoisonMessage>> RocksDbQueueStore::ListPoison(
    const queue::QueueId& id, absl::string_view after, int max_messages) {
  MUSTER_RETURN_IF_ERROR(queue::ValidateListPoison(max_messages));
  MUSTER_ASSIGN_OR_RETURN(const QueuePtr queue, Find(id));
  return queue->ListPoison(after, max_messages);
}

absl::StatusOr<std::vector<std::optional<queue::PoisonMessage>>> RocksDbQueueStore::FindPoison(
    const queue::QueueId& id, absl::Span<const queue::PoisonName> names) {
  MUSTER_RETURN_IF_ERROR(queue::ValidateFindPoison(names.size()));
  MUSTER_ASSIGN_OR_RETURN(const QueuePtr queue, Find(id));
  return queue->FindPoison(names);
}

absl::StatusOr<int64_t> RocksDbQueueStore::Redrive(const queue::QueueId& id,
                                                   absl::Span<const std::string> message_ids,
                                                   int64_t max_messages) {
  MUSTER_ASSIGN_OR_RETURN(const QueuePtr queue, FindWritable(id));
  MUSTER_ASSIGN_OR_RETURN(const int64_t redriven, queue->Redrive(message_ids, max_messages));
  if (redriven >= max_messages && message_ids.empty()) return redriven;
  const auto moved = MoveBack(queue.get(), message_ids, max_messages - redriven);
  if (!moved.ok() && redriven == 0) return moved.status();
  return redriven + moved.value_or(0);
}

absl::StatusOr<int64_t> RocksDbQueueStore::MoveBack(DurableQueue* queue,
                                                    absl::Span<const std::string> message_ids,
                                                    int64_t max_messages) {
  absl::Status failed;
  const auto find = [&](const queue::QueueId& origin) {
    absl::StatusOr<QueuePtr> target = Find(origin);
    if (!target.ok()) {
      failed = absl::FailedPreconditionError(
          absl::StrCat(target.status().message(), ", where the messages came from"));
    }
    return target;
  };
  MUSTER_ASSIGN_OR_RETURN(
      const auto by_origin,
      queue->ChooseMoved(message_ids, max_messages,
                         [&](const queue::QueueId& origin) { return find(origin).ok(); }));
  int64_t moved = 0;
  for (const auto& [origin, requests] : by_origin) {
    const absl::StatusOr<QueuePtr> target = find({origin.first, origin.second});
    if (!target.ok()) continue;
    const auto results = queue->MoveTo(target->get(), requests);
    if (!results.ok()) failed = results.status();
    if (results.ok()) moved += std::count(results->begin(), results->end(), absl::OkStatus());
  }
  if (moved == 0 && !failed.ok()) return failed;
  return moved;
}

absl::StatusOr<int64_t> RocksDbQueueStore::PurgePoison(const queue::QueueId& id) {
  MUSTER_ASSIGN_OR_RETURN(const QueuePtr queue, FindWritable(id));
  return queue->PurgePoison();
}

absl::StatusOr<int64_t> RocksDbQueueStore::DropPoison(const queue::QueueId& id,
                                                      absl::Span<const std::string> message_ids) {
  MUSTER_ASSIGN_OR_RETURN(const QueuePtr queue, FindWritable(id));
  return queue->DropPoison(message_ids);
}

absl::StatusOr<std::vector<absl::Status>> RocksDbQueueStore::Move(
    const queue::QueueId& from, const queue::QueueId& to,
    absl::Span<const queue::MoveRequest> requests) {
  MUSTER_RETURN_IF_ERROR(queue::ValidateMove(requests));
  if (from == to) {
    return absl::InvalidArgumentError(
        absl::StrCat("a message of queue '", from.ToString(), "' cannot be moved to its own"));
  }
  MUSTER_ASSIGN_OR_RETURN(const QueuePtr source, FindWritable(from));
  MUSTER_ASSIGN_OR_RETURN(const QueuePtr target, Find(to));
  return source->MoveTo(target.get(), requests);
}

absl::StatusOr<absl::Duration> RocksDbQueueStore::TimeToVisible(const queue::QueueId& id) {
  MUSTER_ASSIGN_OR_RETURN(const QueuePtr queue, Find(id));
  return queue->TimeToVisible();
}

absl::StatusOr<bool> RocksDbQueueStore::Holds(const queue::QueueId& id,
                                              absl::string_view message_id) {
  MUSTER_ASSIGN_OR_RETURN(const QueuePtr queue, Find(id));
  return queue->Holds(message_id);
}

absl::StatusOr<queue::QueueStats> RocksDbQueueStore::Stats(const queue::QueueId& id) {
  MUSTER_ASSIGN_OR_RETURN(const QueuePtr queue, Find(id));
  return queue->Stats();
}

absl::StatusOr<queue::QueueExtent> RocksDbQueueStore::Extent(const queue::QueueId& id) {
  MUSTER_ASSIGN_OR_RETURN(const QueuePtr queue, Find(id));
  return queue->Extent();
}

absl::StatusOr<std::vector<queue::StoredMessage>> RocksDbQueueStore::Scan(const queue::QueueId& id,
                                                                          uint64_t from, int max) {
  MUSTER_RETURN_IF_ERROR(queue::ValidateScan(max));
  MUSTER_ASSIGN_OR_RETURN(const QueuePtr queue, Find(id));
  return queue->Scan(from, max);
}

absl::StatusOr<uint64_t> RocksDbQueueStore::Reclaim(const queue::QueueId& id) {
  MUSTER_ASSIGN_OR_RETURN(const QueuePtr queue, Find(id));
  MUSTER_RETURN_IF_ERROR(queue->Reclaim());
  return 0;
}

}  // namespace muster::queue::rocksdb
