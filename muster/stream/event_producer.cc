// SPDX-License-Identifier: Apache-2.0
#include "muster/stream/event_producer.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "muster/base/check.h"
#include "muster/base/fingerprint.h"
#include "muster/base/random.h"
#include "muster/base/status.h"

namespace muster::stream {

int PartitionOf(absl::string_view key, int partitions) {
  MUSTER_CHECK(!key.empty() && partitions >= 1, "partitions: ", partitions);
  return static_cast<int>(base::Fingerprint(key).low % static_cast<uint64_t>(partitions));
}

absl::StatusOr<std::unique_ptr<EventProducer>> EventProducer::Open(EventStreamStore* store,
                                                                   absl::string_view stream,
                                                                   const ProducerOptions& options,
                                                                   base::Clock* clock) {
  MUSTER_RETURN_IF_ERROR(ValidateStreamName(stream));
  MUSTER_ASSIGN_OR_RETURN(const StreamOptions described, store->Describe(stream));
  return std::unique_ptr<EventProducer>(
      new EventProducer(store, stream, described.partitions, options, clock));
}

// Producers do not all begin with the same partition.
EventProducer::EventProducer(EventStreamStore* store, absl::string_view stream, int partitions,
                             const ProducerOptions& options, base::Clock* clock)
    : store_(store), stream_(stream), retry_(options.retry, clock), turn_(base::RandomSeed()) {
  for (int p = 0; p < partitions; ++p) lanes_.push_back(std::make_unique<Lane>());
}

EventProducer::~EventProducer() = default;

absl::StatusOr<EventPlace> EventProducer::Send(NewEvent event, int partition) {
  std::vector<NewEvent> events;
  events.push_back(std::move(event));
  return SendAll(std::move(events), partition).front();
}

std::vector<absl::StatusOr<EventPlace>> EventProducer::SendAll(std::vector<NewEvent> events,
                                                               int partition) {
  std::vector<absl::StatusOr<EventPlace>> places(events.size(), absl::UnknownError("not sent"));
  std::map<int, std::vector<size_t>> by_partition;
  const int keyless = NextInTurn();
  for (size_t i = 0; i < events.size(); ++i) {
    const absl::StatusOr<int> chosen = ChoosePartition(events[i], partition, keyless);
    if (chosen.ok()) {
      by_partition[*chosen].push_back(i);
    } else {
      places[i] = chosen.status();
    }
  }
  for (const auto& [chosen, indexes] : by_partition) {
    absl::Status failed;
    for (size_t next = 0; next < indexes.size();) {
      const size_t begin = next;
      Parcel parcel;
      while (next < indexes.size() && parcel.events.size() < kMaxAppendEvents) {
        const size_t size = SizeOf(events[indexes[next]]);
        if (parcel.bytes + size > kMaxAppendBytes) break;
        parcel.bytes += size;
        parcel.events.push_back(std::move(events[indexes[next++]]));
      }
      if (failed.ok()) Ship(chosen, &parcel);
      if (failed.ok()) failed = parcel.status;
      for (size_t i = begin; i < next; ++i) {
        if (failed.ok()) {
          places[indexes[i]] = EventPlace{chosen, parcel.first + static_cast<int64_t>(i - begin)};
        } else {
          places[indexes[i]] = failed;
        }
      }
    }
  }
  return places;
}

absl::StatusOr<int> EventProducer::ChoosePartition(const NewEvent& event, int partition,
                                                   int keyless) const {
  MUSTER_RETURN_IF_ERROR(ValidateAppend(absl::MakeConstSpan(&event, 1)));
  if (partition == kAnyPartition) {
    return event.key.empty() ? keyless : PartitionOf(event.key, partitions());
  }
  if (partition >= 0 && partition < partitions()) return partition;
  return absl::InvalidArgumentError(
      absl::StrCat("partition: ", partition, ", stream ", stream_, " has 0 to ", partitions() - 1));
}

int EventProducer::NextInTurn() { return static_cast<int>(turn_.fetch_add(1) % lanes_.size()); }

// The caller that finds no append running appends for all that wait, and ends with its own parcel.
void EventProducer::Ship(int partition, Parcel* parcel) {
  Lane* const lane = lanes_[static_cast<size_t>(partition)].get();
  lane->mu.Lock();
  lane->waiting.push_back(parcel);
  while (!parcel->done) {
    if (lane->appending) {
      lane->changed.Wait(&lane->mu);
      continue;
    }
    lane->appending = true;
    const std::vector<Parcel*> batch = TakeBatchLocked(lane);
    lane->mu.Unlock();
    const absl::StatusOr<int64_t> first = Append(partition, batch);
    lane->mu.Lock();
    int64_t offset = first.value_or(0);
    for (Parcel* shipped : batch) {
      shipped->status = first.status();
      shipped->first = offset;
      shipped->done = true;
      offset += static_cast<int64_t>(shipped->events.size());
    }
    lane->appending = false;
    lane->changed.NotifyAll();
  }
  lane->mu.Unlock();
}

std::vector<EventProducer::Parcel*> EventProducer::TakeBatchLocked(Lane* lane) {
  size_t count = 0;
  size_t bytes = 0;
  auto end = lane->waiting.begin();
  for (; end != lane->waiting.end(); ++end) {
    count += (*end)->events.size();
    bytes += (*end)->bytes;
    if (count > kMaxAppendEvents || bytes > kMaxAppendBytes) break;
  }
  std::vector<Parcel*> batch(lane->waiting.begin(), end);
  lane->waiting.erase(lane->waiting.begin(), end);
  return batch;
}

absl::StatusOr<int64_t> EventProducer::Append(int partition, const std::vector<Parcel*>& batch) {
  std::vector<NewEvent> events;
  if (batch.size() > 1) {
    for (Parcel* parcel : batch) {
      events.insert(events.end(), parcel->events.begin(), parcel->events.end());
    }
  }
  const std::vector<NewEvent>& appended = batch.size() == 1 ? batch.front()->events : events;
  return retry_.Run(
      [&](const base::RetryAttempt&) { return store_->Append(stream_, partition, appended); });
}

}  // namespace muster::stream
