// SPDX-License-Identifier: Apache-2.0
#include "muster/queue/rocksdb/load_queues.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "muster/base/status.h"
#include "muster/queue/rocksdb/codec.h"
#include "muster/rocksdb/database.h"
#include "rocksdb/db.h"

namespace muster::queue::rocksdb {
namespace {

using Visit = std::function<absl::Status(absl::string_view key, absl::string_view value)>;

absl::Status ForEach(Storage* storage, FamilyIndex family, absl::string_view from,
                     absl::string_view to, const Visit& visit) {
  ::rocksdb::ReadOptions options;
  options.fill_cache = false;
  options.readahead_size = 1 << 20;
  const std::unique_ptr<::rocksdb::Iterator> it(
      storage->db()->NewIterator(options, storage->family(family)));
  for (it->Seek(ToSlice(from)); it->Valid(); it->Next()) {
    if (!to.empty() && ToView(it->key()) >= to) break;
    MUSTER_RETURN_IF_ERROR(visit(ToView(it->key()), ToView(it->value())));
  }
  return muster::rocksdb::ToStatus(it->status(), "read the queues");
}

absl::Status LoadQueueRecords(Storage* storage, LoadedQueues* queues) {
  return ForEach(storage, kMeta, "q", "r",
                 [&](absl::string_view key, absl::string_view value) -> absl::Status {
                   const auto number = ParseQueueNumber(key, 1);
                   auto record = DecodeQueue(value, key);
                   if (!number.has_value() || !record.has_value()) {
                     return absl::DataLossError(
                         absl::StrCat("the record of queue ", number.value_or(0), " is damaged"));
                   }
                   (*queues)[*number] =
                       std::make_shared<DurableQueue>(storage, *number, *std::move(record));
                   return absl::OkStatus();
                 });
}

// A sequence must never be used twice, or an old dedup record would refer to a new message. Where
// the counters do not give the last sequence, the dedup records show some of those in use.
absl::Status LoadUsedSequences(Storage* storage, uint64_t number, DurableQueue* queue) {
  return ForEach(storage, kDedup, DedupKey(number, ""), DedupKey(number + 1, ""),
                 [&](absl::string_view key, absl::string_view value) {
                   const auto record = DecodeDedup(value, key);
                   if (record.has_value()) queue->LoadUsedSequence(record->seq);
                   return absl::OkStatus();
                 });
}

absl::Status LoadAllCounters(Storage* storage, const LoadedQueues& queues) {
  LoadedQueues without = queues;
  MUSTER_RETURN_IF_ERROR(
      ForEach(storage, kMeta, "c", "d", [&](absl::string_view key, absl::string_view value) {
        const auto found = queues.find(ParseQueueNumber(key, 1).value_or(0));
        if (found == queues.end()) return absl::OkStatus();
        const Counters counters = DecodeCounters(value).value_or(Counters());
        found->second->LoadCounters(counters);
        // Zero means that the record is damaged, or was merged onto a damaged one.
        if (counters.next_seq != 0) without.erase(found->first);
        return absl::OkStatus();
      }));
  for (const auto& [number, queue] : without) {
    MUSTER_RETURN_IF_ERROR(LoadUsedSequences(storage, number, queue.get()));
  }
  return absl::OkStatus();
}

// Passes each message key of `family` to its queue.
absl::Status ForEachMessage(
    Storage* storage, FamilyIndex family, const LoadedQueues& queues,
    const std::function<void(DurableQueue*, uint64_t seq, absl::string_view key,
                             absl::string_view value)>& visit) {
  std::pair<uint64_t, DurableQueue*> last = {0, nullptr};  // messages come queue by queue
  return ForEach(storage, family, "", "", [&](absl::string_view key, absl::string_view value) {
    const auto address = ParseMessageKey(key);
    if (!address.has_value()) return absl::OkStatus();
    if (last.second == nullptr || address->queue != last.first) {
      const auto found = queues.find(address->queue);
      last = {address->queue, found == queues.end() ? nullptr : found->second.get()};
    }
    if (last.second != nullptr) visit(last.second, address->seq, key, value);
    return absl::OkStatus();
  });
}

absl::Status LoadMessages(Storage* storage, const LoadedQueues& queues, bool holders_are_gone) {
  const int64_t now_us = storage->NowUs();
  int64_t latest_us = 0;
  MUSTER_RETURN_IF_ERROR(ForEachMessage(
      storage, kState, queues,
      [&](DurableQueue* queue, uint64_t seq, absl::string_view key, absl::string_view value) {
        auto state = DecodeState(value, key);
        if (state.has_value() && holders_are_gone && state->has(kHeld)) {
          state->visible_us = std::min(state->visible_us, now_us);
        }
        if (state.has_value()) latest_us = std::max(latest_us, state->insertion_us);
        queue->LoadMessage(seq, state);
      }));
  storage->AdvanceTo(latest_us);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LoadedQueues> LoadQueues(Storage* storage, bool holders_are_gone) {
  LoadedQueues queues;
  MUSTER_RETURN_IF_ERROR(LoadQueueRecords(storage, &queues));
  MUSTER_RETURN_IF_ERROR(LoadAllCounters(storage, queues));
  MUSTER_RETURN_IF_ERROR(LoadMessages(storage, queues, holders_are_gone));
  MUSTER_RETURN_IF_ERROR(ForEachMessage(storage, kPoison, queues,
                                        [](DurableQueue* queue, uint64_t seq, absl::string_view,
                                           absl::string_view) { queue->LoadPoison(seq); }));
  return queues;
}

}  // namespace muster::queue::rocksdb
