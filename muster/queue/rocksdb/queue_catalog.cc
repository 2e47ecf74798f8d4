// SPDX-License-Identifier: Apache-2.0
#include "muster/queue/rocksdb/queue_catalog.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "muster/base/status.h"

namespace muster::queue::rocksdb {

using os::Damage;

std::string QueueCatalog::NameOf(const QueueFacts& queue) {
  return absl::StrCat("queue '", queue.record.id.ToString(), "'");
}

std::string QueueCatalog::NameOf(const QueueFacts& queue, const MessageAddress& message) const {
  const std::string id = store_.has_value() ? MessageIdOf(store_->salt, message.queue, message.seq)
                                            : absl::StrCat("number ", message.seq);
  return absl::StrCat(NameOf(queue), " message ", id);
}

absl::Status QueueCatalog::RemoveDamaged(FamilyIndex family, absl::string_view key,
                                         absl::string_view value, std::string name,
                                         std::string why) {
  Damage damage;
  damage.records = {session_->Stored(family, key, value)};
  damage.kind = damage.records.front().family;
  damage.name = std::move(name);
  damage.why = std::move(why);
  damage.remedy = "the record is taken away";
  return session_->Found(std::move(damage));
}

// Keys come in the order 'c' < 'q' < 's': counters come before the queues are known, so they wait.
absl::Status QueueCatalog::Read() {
  std::map<uint64_t, std::string> counters;
  const auto check = [&](absl::string_view key, absl::string_view value) {
    session_->Count(1);
    if (key.size() != 9 || key[0] != 'c') return ReadRecord(key, value);
    counters[*ParseQueueNumber(key, 1)] = std::string(value);
    return absl::OkStatus();
  };
  MUSTER_RETURN_IF_ERROR(session_->ForEach(kMeta, check));
  for (const auto& [number, value] : counters) {
    MUSTER_RETURN_IF_ERROR(AddCounters(number, value));
  }
  return absl::OkStatus();
}

absl::Status QueueCatalog::AddCounters(uint64_t number, const std::string& value) {
  std::optional<Counters> counters = DecodeCounters(value);
  MUSTER_ASSIGN_OR_RETURN(QueueFacts* const queue,
                          Find(number, [&] { return counters.has_value(); }));
  if (queue == nullptr) {
    return RemoveDamaged(kMeta, CountersKey(number), value,
                         absl::StrCat("counters of queue ", number), "there is no such queue");
  }
  queue->counters = counters;
  if (!queue->counters.has_value()) queue->damaged_counters = value;
  return absl::OkStatus();
}

absl::Status QueueCatalog::ReadRecord(absl::string_view key, absl::string_view value) {
  if (key == StoreKey()) {
    if (FormatVersionOf(value) > kFormatVersion) {
      return absl::FailedPreconditionError("the queues were written by a newer muster");
    }
    store_ = DecodeStore(value);
    if (!store_.has_value()) damaged_store_ = std::string(value);
    return absl::OkStatus();
  }
  if (key.size() == 9 && key[0] == 'q') return ReadQueue(key, value);
  // A message does without: it only forgets who held it, or where it came from.
  if (key.size() == 17 && key[0] == 'n') {
    if (DecodeNote(value, key).has_value()) return absl::OkStatus();
    return RemoveDamaged(kMeta, key, value, absl::StrCat("note ", absl::BytesToHexString(key)),
                         "it is damaged");
  }
  return RemoveDamaged(kMeta, key, value, absl::StrCat("key ", absl::BytesToHexString(key)),
                       "no record has such a key");
}

absl::Status QueueCatalog::ReadQueue(absl::string_view key, absl::string_view value) {
  const uint64_t number = *ParseQueueNumber(key, 1);
  last_queue_ = std::max(last_queue_, number);
  std::optional<QueueRecord> record = DecodeQueue(value, key);
  if (record.has_value()) {
    queues_[number].record = *std::move(record);
    return absl::OkStatus();
  }
  return Recover(number, "it is damaged", {session_->Stored(kMeta, key, value)});
}

absl::Status QueueCatalog::Recover(uint64_t number, std::string why,
                                   std::vector<os::StoredRecord> records) {
  last_queue_ = std::max(last_queue_, number);
  const std::string key = QueueKey(number);
  QueueRecord recovered;
  recovered.id = {account_, absl::StrCat("recovered-", number)};
  Damage damage{.kind = "queue", .name = absl::StrCat("queue ", number), .why = std::move(why)};
  damage.remedy = absl::StrCat("the queue is called ", recovered.id.ToString());
  damage.records = std::move(records);
  MUSTER_RETURN_IF_ERROR(session_->Found(std::move(damage)));
  session_->Put(kMeta, key, EncodeQueue(recovered, key));
  queues_[number].record = std::move(recovered);
  return absl::OkStatus();
}

absl::StatusOr<QueueFacts*> QueueCatalog::Find(uint64_t number,
                                               absl::FunctionRef<bool()> shows_it_was_there) {
  if (const auto queue = queues_.find(number); queue != queues_.end()) return &queue->second;
  if (number == 0 || number >= kPoisonBodies || !shows_it_was_there()) return nullptr;
  MUSTER_RETURN_IF_ERROR(Recover(number, "it is not there", {}));
  return &queues_[number];
}

absl::Status QueueCatalog::Finish() {
  MUSTER_RETURN_IF_ERROR(CheckStore());
  for (const auto& [number, queue] : queues_) {
    MUSTER_RETURN_IF_ERROR(CheckCounters(number, queue));
  }
  return absl::OkStatus();
}

absl::Status QueueCatalog::CheckStore() {
  if (store_.has_value() && store_->next_queue > last_queue_) return absl::OkStatus();
  const bool is_new = damaged_store_.empty() && last_queue_ == 0;
  if (!store_.has_value() && is_new) return absl::OkStatus();
  Damage damage{.kind = "store", .name = "the store record"};
  StoreRecord mended = store_.value_or(StoreRecord());
  if (store_.has_value()) {
    damage.why = absl::StrCat("it would give number ", last_queue_, " to another queue");
    damage.remedy = absl::StrCat("the next queue gets number ", last_queue_ + 1);
  } else {
    damage.why = damaged_store_.empty() ? "it is not there" : "it is damaged";
    damage.remedy = "is made again: ids of messages change";
    mended.salt = static_cast<uint64_t>(now_us_) << 20;
    mended.epoch = (last_lease_ >> kLeaseCounterBits) + 1;
  }
  mended.next_queue = last_queue_ + 1;
  if (!damaged_store_.empty())
    damage.records = {session_->Stored(kMeta, StoreKey(), damaged_store_)};
  MUSTER_RETURN_IF_ERROR(session_->Found(std::move(damage)));
  session_->Put(kMeta, StoreKey(), EncodeStore(mended));
  return absl::OkStatus();
}

// No total includes cleared or purged messages, so there may be fewer messages than the totals say.
absl::Status QueueCatalog::CheckCounters(uint64_t number, const QueueFacts& queue) {
  const Counters counters = queue.counters.value_or(Counters());
  const int64_t known = counters.in - counters.out - counters.expired;
  Damage damage{.kind = "counters", .name = NameOf(queue)};
  if (!queue.damaged_counters.empty()) {
    damage.why = "they are damaged";
    damage.records = {session_->Stored(kMeta, CountersKey(number), queue.damaged_counters)};
  } else if (counters.next_seq < queue.next_seq) {
    damage.why = absl::StrCat("they would give sequence ", counters.next_seq, " again; ",
                              queue.next_seq - 1, " was given");
  } else if (known < queue.messages) {
    damage.why =
        absl::StrCat("they know of ", known, " messages, and ", queue.messages, " are there");
  } else {
    return absl::OkStatus();
  }
  damage.remedy = "are made again of what is there";
  MUSTER_RETURN_IF_ERROR(session_->Found(std::move(damage)));
  Counters mended = counters;
  mended.in += std::max<int64_t>(0, queue.messages - known);
  mended.next_seq = std::max(counters.next_seq, queue.next_seq);
  session_->Put(kMeta, CountersKey(number), EncodeCounters(mended));
  return absl::OkStatus();
}

}  // namespace muster::queue::rocksdb
