// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/stream/memory_event_stream_store.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status.h"

namespace muster::stream::testing {

namespace {

absl::Status None(absl::string_view stream, int partition) {
  return absl::NotFoundError(absl::StrCat("no partition ", partition, " of a stream ", stream));
}

}  // namespace

class MemoryEventStreamStore::Reader final : public PartitionReader {
 public:
  Reader(MemoryEventStreamStore* store, absl::string_view stream, int partition, int64_t offset)
      : store_(store), stream_(stream), partition_(partition), next_(offset) {}

  absl::StatusOr<std::vector<Event>> Next(int max_events, absl::Duration wait) override {
    base::MutexLock lock(&store_->mu_);
    const absl::Duration deadline = store_->clock_->Monotonic() + wait;
    for (;;) {
      MUSTER_RETURN_IF_ERROR(store_->read_answer_);
      const Log* const log = store_->FindLocked(stream_, partition_);
      if (log == nullptr) return None(stream_, partition_);
      if (next_ < log->first || next_ > log->next()) {
        return absl::OutOfRangeError(
            absl::StrCat("offset ", next_, ", kept are ", log->first, " to ", log->next()));
      }
      if (next_ < log->next() && !cancelled_) return TakeFrom(*log, max_events);
      if (cancelled_ || store_->clock_->Monotonic() >= deadline) return std::vector<Event>();
      store_->clock_->WaitUntil(&store_->changed_, &store_->mu_, deadline);
    }
  }

  void Cancel() override {
    base::MutexLock lock(&store_->mu_);
    cancelled_ = true;
    store_->changed_.NotifyAll();
  }

 private:
  std::vector<Event> TakeFrom(const Log& log, int max_events) {
    const int64_t end = std::min(log.next(), next_ + max_events);
    std::vector<Event> events(log.events.begin() + (next_ - log.first),
                              log.events.begin() + (end - log.first));
    next_ = end;
    std::erase_if(events, [&log](const Event& event) { return log.lost.contains(event.offset); });
    return events;
  }

  MemoryEventStreamStore* const store_;  // not owned
  const std::string stream_;
  const int partition_;
  int64_t next_;
  bool cancelled_ = false;
};

MemoryEventStreamStore::Log* MemoryEventStreamStore::FindLocked(absl::string_view stream,
                                                                int partition) {
  const auto found = streams_.find(std::string(stream));
  if (found == streams_.end() || partition < 0 ||
      static_cast<size_t>(partition) >= found->second.logs.size()) {
    return nullptr;
  }
  return &found->second.logs[static_cast<size_t>(partition)];
}

absl::Status MemoryEventStreamStore::Create(absl::string_view stream,
                                            const StreamOptions& options) {
  MUSTER_RETURN_IF_ERROR(ValidateStreamName(stream));
  MUSTER_RETURN_IF_ERROR(ValidateOptions(options));
  base::MutexLock lock(&mu_);
  const auto [at, made] = streams_.try_emplace(std::string(stream));
  if (!made) {
    if (at->second.options == options) return absl::OkStatus();
    return absl::AlreadyExistsError(absl::StrCat("stream ", stream, " has other options"));
  }
  at->second = {.options = options,
                .logs = std::vector<Log>(static_cast<size_t>(options.partitions)),
                .incarnation = ++streams_made_};
  return absl::OkStatus();
}

absl::Status MemoryEventStreamStore::Delete(absl::string_view stream) {
  base::MutexLock lock(&mu_);
  changed_.NotifyAll();
  return streams_.erase(std::string(stream)) > 0 ? absl::OkStatus() : None(stream, 0);
}

absl::StatusOr<std::vector<std::string>> MemoryEventStreamStore::List() {
  base::MutexLock lock(&mu_);
  std::vector<std::string> names;
  for (const auto& [name, _] : streams_) names.push_back(name);
  return names;
}

absl::StatusOr<StreamOptions> MemoryEventStreamStore::Describe(absl::string_view stream) {
  base::MutexLock lock(&mu_);
  const auto found = streams_.find(std::string(stream));
  if (found == streams_.end()) return None(stream, 0);
  return found->second.options;
}

absl::StatusOr<PartitionExtent> MemoryEventStreamStore::Extent(absl::string_view stream,
                                                               int partition) {
  base::MutexLock lock(&mu_);
  MUSTER_RETURN_IF_ERROR(read_answer_);
  const Log* const log = FindLocked(stream, partition);
  if (log == nullptr) return None(stream, partition);
  return PartitionExtent{.first = log->first,
                         .next = log->next(),
                         .incarnation = streams_.at(std::string(stream)).incarnation};
}

absl::StatusOr<int64_t> MemoryEventStreamStore::Append(absl::string_view stream, int partition,
                                                       absl::Span<const NewEvent> events) {
  MUSTER_RETURN_IF_ERROR(ValidateAppend(events));
  base::MutexLock lock(&mu_);
  ++waiting_;
  changed_.NotifyAll();
  while (held_) changed_.Wait(&mu_);
  --waiting_;
  ++appends_;
  MUSTER_RETURN_IF_ERROR(append_answer_);
  Log* const log = FindLocked(stream, partition);
  if (log == nullptr) return None(stream, partition);
  const int64_t first = log->next();
  for (const NewEvent& event : events) {
    log->events.push_back({.offset = log->next(),
                           .appended = clock_->Now(),
                           .key = event.key,
                           .body = event.body,
                           .properties = event.properties});
  }
  changed_.NotifyAll();
  return first;
}

absl::StatusOr<std::unique_ptr<PartitionReader>> MemoryEventStreamStore::OpenReader(
    absl::string_view stream, int partition, int64_t offset) {
  base::MutexLock lock(&mu_);
  MUSTER_RETURN_IF_ERROR(read_answer_);
  if (FindLocked(stream, partition) == nullptr) return None(stream, partition);
  return std::make_unique<Reader>(this, stream, partition, offset);
}

void MemoryEventStreamStore::Trim(const std::string& stream, int partition, int64_t first) {
  base::MutexLock lock(&mu_);
  Log* const log = FindLocked(stream, partition);
  const int64_t end = std::min(first, log->next());
  if (end <= log->first) return;
  log->events.erase(log->events.begin(), log->events.begin() + (end - log->first));
  log->first = end;
  changed_.NotifyAll();
}

void MemoryEventStreamStore::Lose(const std::string& stream, int partition, int64_t offset) {
  base::MutexLock lock(&mu_);
  FindLocked(stream, partition)->lost.insert(offset);
}

void MemoryEventStreamStore::AnswerAppends(absl::Status status) {
  base::MutexLock lock(&mu_);
  append_answer_ = std::move(status);
}

void MemoryEventStreamStore::AnswerReads(absl::Status status) {
  base::MutexLock lock(&mu_);
  read_answer_ = std::move(status);
  changed_.NotifyAll();
}

void MemoryEventStreamStore::HoldAppends(bool held) {
  base::MutexLock lock(&mu_);
  held_ = held;
  changed_.NotifyAll();
}

void MemoryEventStreamStore::AwaitHeldAppends(int n) {
  base::MutexLock lock(&mu_);
  while (waiting_ < n) changed_.Wait(&mu_);
}

int MemoryEventStreamStore::appends() const {
  base::MutexLock lock(&mu_);
  return appends_;
}

}  // namespace muster::stream::testing
