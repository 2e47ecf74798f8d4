// SPDX-License-Identifier: Apache-2.0
#include "muster/stream/rocksdb/partition_log.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/status.h"
#include "muster/stream/event_codec.h"
#include "rocksdb/convenience.h"
#include "rocksdb/db.h"
#include "rocksdb/write_batch.h"

namespace muster::stream::rocksdb {
namespace {

using muster::rocksdb::ToSlice;

// Sweeps are this part of the retention apart, and of max_bytes.
constexpr int kSweepsInRetention = 64;
constexpr int kSweepsInMaxBytes = 16;

std::string NameOfEvent(absl::string_view log, int64_t offset) {
  return absl::StrCat(log, " event ", offset);
}

// As Database::Copy, of a read that is no iterator's.
absl::StatusOr<std::string> Get(const muster::rocksdb::Database& database, FamilyIndex family,
                                absl::string_view key, absl::string_view what) {
  std::string value;
  const ::rocksdb::Status status =
      database.db()->Get(::rocksdb::ReadOptions(), database.family(family), ToSlice(key), &value);
  if (!status.ok()) return muster::rocksdb::ToStatus(status, what);
  return value;
}

}  // namespace

PartitionLog::PartitionLog(const LogContext& context, const PartitionId& id, std::string name,
                           const StreamOptions& options)
    : context_(context), id_(id), name_(std::move(name)), options_(options) {}

absl::StatusOr<std::shared_ptr<PartitionLog>> PartitionLog::Load(const LogContext& context,
                                                                 const PartitionId& id,
                                                                 std::string name,
                                                                 const StreamOptions& options) {
  std::shared_ptr<PartitionLog> log(new PartitionLog(context, id, std::move(name), options));
  MUSTER_RETURN_IF_ERROR(log->LoadEnds());
  log->Schedule();
  return log;
}

absl::Status PartitionLog::LoadEnds() {
  base::MutexLock lock(&mu_);
  const std::string key = PartitionKey(id_);
  const absl::StatusOr<std::string> stored = Get(*context_.database, kMeta, key, name_);
  if (stored.ok()) {
    const std::optional<PartitionRecord> record = DecodePartition(*stored, key);
    if (!record.has_value()) {
      return absl::DataLossError(absl::StrCat(name_, ": its record is damaged"));
    }
    first_ = record->first;
    next_ = record->next;
    first_bytes_ = next_bytes_ = record->end_bytes;
    last_appended_ = record->last_appended;
  } else if (!absl::IsNotFound(stored.status())) {
    return stored.status();
  }
  MUSTER_RETURN_IF_ERROR(LoadLastEvent());
  if (first_ < next_) {
    const absl::StatusOr<EventHead> head = HeadAt(first_);
    first_appended_ = head.ok() ? head->appended : last_appended_;
    if (head.ok()) first_bytes_ = head->begin_bytes;
  }
  written_next_ = next_;
  written_bytes_ = next_bytes_;
  last_written_ = last_appended_;
  return absl::OkStatus();
}

// Damaged events at the end count with their size: offsets and sizes go on behind them.
absl::Status PartitionLog::LoadLastEvent() {
  const std::string begin = EventKey(id_, first_);
  const std::unique_ptr<::rocksdb::Iterator> it(context_.database->db()->NewIterator(
      ::rocksdb::ReadOptions(), context_.database->family(kEvents)));
  int64_t unknown_bytes = 0;
  bool is_last = true;
  for (it->SeekForPrev(EventKey(id_, INT64_MAX)); it->Valid(); it->Prev()) {
    const std::string key = muster::rocksdb::Copy(it->key());
    if (key < begin) break;
    const std::string value = muster::rocksdb::Copy(it->value());
    const std::optional<EventRecord> event = DecodeEvent(value, key);
    if (std::exchange(is_last, false)) {
      const int64_t lost_through = event.has_value() ? event->lost_through : 0;
      next_ = std::max(next_, std::max(OffsetIn(key).value_or(0), lost_through) + 1);
    }
    if (event.has_value()) {
      next_bytes_ = event->end_bytes + unknown_bytes;
      last_appended_ = std::max(last_appended_, event->appended);
      return absl::OkStatus();
    }
    unknown_bytes += static_cast<int64_t>(value.size());
  }
  MUSTER_RETURN_IF_ERROR(muster::rocksdb::ToStatus(it->status(), name_));
  next_bytes_ += unknown_bytes;
  return absl::OkStatus();
}

absl::Status PartitionLog::Gone() const {
  return absl::NotFoundError(absl::StrCat(name_, " was deleted"));
}

// --- appends ---

absl::StatusOr<int64_t> PartitionLog::Append(absl::Span<const NewEvent> events) {
  std::vector<std::string> contents;
  contents.reserve(events.size());
  for (const NewEvent& event : events) contents.push_back(EncodeContent(event));
  absl::Time appended;
  int64_t end_bytes = 0;
  MUSTER_ASSIGN_OR_RETURN(const int64_t offset, Write(contents, &appended, &end_bytes));
  MUSTER_RETURN_IF_ERROR(base::Annotate(context_.database->Sync(), name_));
  Publish(offset + static_cast<int64_t>(contents.size()), appended, end_bytes);
  return offset;
}

// Under the lock, though it calls the database: the log holds events in the order of their offsets,
// so that a crash, which cuts the log short, leaves no gap. What takes time is the sync.
absl::StatusOr<int64_t> PartitionLog::Write(absl::Span<const std::string> contents,
                                            absl::Time* appended, int64_t* end_bytes) {
  base::MutexLock lock(&mu_);
  if (closed_) return Gone();
  // Never back, when the wall clock was set back: what is older was appended earlier.
  *appended = std::max(context_.clock->Now(), last_written_);
  *end_bytes = written_bytes_;
  const int64_t first = written_next_;
  int64_t offset = first;
  ::rocksdb::WriteBatch batch;
  for (const std::string& content : contents) {
    const std::string key = EventKey(id_, offset++);
    const std::string record = EncodeEvent(*appended, *end_bytes, content, key);
    *end_bytes += static_cast<int64_t>(record.size());
    batch.Put(context_.database->family(kEvents), key, record);
  }
  MUSTER_RETURN_IF_ERROR(base::Annotate(
      context_.database->Write(&batch, muster::rocksdb::Durability::kProcess), name_));
  written_next_ = offset;
  written_bytes_ = *end_bytes;
  last_written_ = *appended;
  return first;
}

void PartitionLog::Publish(int64_t next, absl::Time appended, int64_t end_bytes) {
  {
    base::MutexLock lock(&mu_);
    if (next <= next_) return;  // a later append's sync has covered this one
    // The first of an empty log may be an earlier append's; its time is at most this one's, and
    // the difference is a sync's.
    if (first_ == next_) first_appended_ = appended;
    next_ = next;
    next_bytes_ = end_bytes;
    last_appended_ = appended;
  }
  changed_.NotifyAll();
  Schedule();
}

absl::StatusOr<PartitionExtent> PartitionLog::Extent() const {
  base::MutexLock lock(&mu_);
  if (closed_) return Gone();
  return PartitionExtent{first_, next_, last_appended_, id_.stream};
}

// --- reads ---

absl::StatusOr<PartitionLog::Found> PartitionLog::Read(int64_t place, int max_events,
                                                       absl::Duration wait,
                                                       const std::atomic<bool>& cancelled) {
  MUSTER_ASSIGN_OR_RETURN(const int64_t end, Await(place, wait, cancelled));
  if (end == place) return Found{{}, place};
  return ReadEvents(place, end, max_events);
}

absl::StatusOr<int64_t> PartitionLog::Await(int64_t place, absl::Duration wait,
                                            const std::atomic<bool>& cancelled) const {
  const absl::Duration deadline = context_.clock->Monotonic() + wait;
  base::MutexLock lock(&mu_);
  for (bool late = wait <= absl::ZeroDuration();;) {
    if (cancelled) return place;
    MUSTER_RETURN_IF_ERROR(CheckPlaceLocked(place));
    if (place < next_) return next_;
    if (late) return place;
    late = context_.clock->WaitUntil(&changed_, &mu_, deadline);
  }
}

absl::Status PartitionLog::CheckPlaceLocked(int64_t place) const {
  if (closed_) return Gone();
  if (first_ <= place && place <= next_) return absl::OkStatus();
  return absl::OutOfRangeError(absl::StrCat(
      NameOfEvent(name_, place), place < first_ ? ": it is no longer kept" : " lies beyond the end",
      "; events are kept from ", first_, " to ", next_ - 1));
}

absl::StatusOr<PartitionLog::Found> PartitionLog::ReadEvents(int64_t place, int64_t end,
                                                             int max_events) const {
  const std::string end_key = EventKey(id_, end);
  const ::rocksdb::Slice bound(end_key);
  ::rocksdb::ReadOptions options;
  options.iterate_upper_bound = &bound;
  const std::unique_ptr<::rocksdb::Iterator> it(
      context_.database->db()->NewIterator(options, context_.database->family(kEvents)));
  Found found{{}, place};
  size_t bytes = 0;
  absl::Status failure;
  for (it->Seek(EventKey(id_, place));; it->Next()) {
    if (static_cast<int>(found.events.size()) == max_events || bytes >= kMaxReadBytes) return found;
    if (!it->Valid()) break;
    const std::string key = muster::rocksdb::Copy(it->key());
    if (OffsetIn(key) != found.next) break;
    const std::string value = muster::rocksdb::Copy(it->value());
    const std::optional<EventRecord> record = DecodeEvent(value, key);
    if (record.has_value() && record->lost_through > 0) {
      found.next = record->lost_through + 1;
      continue;
    }
    absl::StatusOr<Event> event = DecodeAt(found.next, key, value);
    failure = event.status();
    if (!failure.ok()) break;
    bytes += value.size();
    found.events.push_back(*std::move(event));
    ++found.next;
  }
  // What precedes the damage first; the next call meets it again.
  if (found.next > place) return found;
  found.next = BehindLost(place);
  if (found.next > place) return found;
  MUSTER_RETURN_IF_ERROR(failure);
  MUSTER_RETURN_IF_ERROR(muster::rocksdb::ToStatus(it->status(), NameOfEvent(name_, place)));
  return Missing(place);
}

int64_t PartitionLog::BehindLost(int64_t place) const {
  const std::unique_ptr<::rocksdb::Iterator> it(context_.database->db()->NewIterator(
      ::rocksdb::ReadOptions(), context_.database->family(kEvents)));
  it->SeekForPrev(EventKey(id_, place));
  if (!it->Valid()) return place;
  const std::string key = muster::rocksdb::Copy(it->key());
  if (key < EventKey(id_, 0)) return place;
  const std::optional<EventRecord> record = DecodeEvent(muster::rocksdb::Copy(it->value()), key);
  return record.has_value() ? std::max(place, record->lost_through + 1) : place;
}

absl::StatusOr<Event> PartitionLog::DecodeAt(int64_t offset, absl::string_view key,
                                             absl::string_view value) const {
  const std::string what = NameOfEvent(name_, offset);
  const std::optional<EventRecord> record = DecodeEvent(value, key);
  if (!record.has_value()) return absl::DataLossError(absl::StrCat(what, " is damaged"));
  MUSTER_ASSIGN_OR_RETURN(NewEvent content, DecodeContent(record->content, what));
  return Event{offset, record->appended, std::move(content.key), std::move(content.body),
               std::move(content.properties)};
}

absl::Status PartitionLog::Missing(int64_t place) const {
  base::MutexLock lock(&mu_);
  MUSTER_RETURN_IF_ERROR(CheckPlaceLocked(place));  // a sweep may have passed meanwhile
  return absl::DataLossError(absl::StrCat(NameOfEvent(name_, place), " is lost"));
}

void PartitionLog::Cancel(std::atomic<bool>* cancelled) {
  base::MutexLock lock(&mu_);
  *cancelled = true;
  changed_.NotifyAll();
}

// --- retention ---

bool PartitionLog::HoldsTooMuchLocked() const {
  return options_.max_bytes > 0 && next_bytes_ - first_bytes_ > options_.max_bytes;
}

absl::Time PartitionLog::DueLocked() const {
  if (closed_ || first_ == next_) return absl::InfiniteFuture();
  if (HoldsTooMuchLocked()) return absl::InfinitePast();
  return first_appended_ + options_.retention + options_.retention / kSweepsInRetention;
}

void PartitionLog::Schedule(std::optional<absl::Time> after) {
  if (context_.sweeper == nullptr) return;
  absl::Time due;
  {
    base::MutexLock lock(&mu_);
    due = DueLocked();
    if ((after.has_value() && due <= *after) || due >= scheduled_) return;
    scheduled_ = due;
  }
  context_.sweeper->Schedule(shared_from_this(), due);
}

absl::Status PartitionLog::Sweep() {
  base::MutexLock sweep(&sweep_mu_);
  const absl::Time now = context_.clock->Now();
  int64_t first = 0, next = 0, keep_from_bytes = 0;
  {
    base::MutexLock lock(&mu_);
    scheduled_ = absl::InfiniteFuture();
    if (closed_) return absl::OkStatus();
    first = first_;
    next = next_;
    if (HoldsTooMuchLocked()) {
      keep_from_bytes = next_bytes_ - (options_.max_bytes - options_.max_bytes / kSweepsInMaxBytes);
    }
  }
  const int64_t kept = FirstKept(first, next, [&](const EventHead& head) {
    return head.begin_bytes < keep_from_bytes || head.appended + options_.retention <= now;
  });
  // Too early, or it cannot read what it should drop: that waits for the next append.
  if (kept == first) {
    Schedule(now);
    return absl::OkStatus();
  }
  // The record of lost events does not go before the last of them does.
  MUSTER_RETURN_IF_ERROR(base::Annotate(Drop(BehindLost(kept)), name_));
  Schedule();
  return absl::OkStatus();
}

absl::StatusOr<PartitionLog::EventHead> PartitionLog::HeadAt(int64_t offset) const {
  const std::string key = EventKey(id_, offset), what = NameOfEvent(name_, offset);
  MUSTER_ASSIGN_OR_RETURN(const std::string value, Get(*context_.database, kEvents, key, what));
  const std::optional<EventRecord> event = DecodeEvent(value, key);
  if (!event.has_value()) return absl::DataLossError(absl::StrCat(what, " is damaged"));
  return EventHead{event->appended, event->end_bytes - static_cast<int64_t>(value.size()),
                   event->end_bytes};
}

int64_t PartitionLog::FirstKept(int64_t low, int64_t high,
                                const std::function<bool(const EventHead&)>& drops) const {
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    int64_t readable = middle;
    absl::StatusOr<EventHead> head = HeadAt(readable);
    while (!head.ok() && ++readable < high) head = HeadAt(readable);
    if (head.ok() && drops(*head)) {
      low = readable + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// Readers learn of it before the events go, so that none takes a removed event for a lost one. The
// sync comes before the files go, for those do not come back with the log.
absl::Status PartitionLog::Drop(int64_t first) {
  PartitionRecord record;
  {
    base::MutexLock lock(&mu_);
    const absl::StatusOr<EventHead> head = HeadAt(first);
    first_ = first;
    first_bytes_ = head.ok() ? head->begin_bytes : next_bytes_;
    first_appended_ = head.ok() ? head->appended : last_appended_;
    record = {first_, next_, next_bytes_, last_appended_};
  }
  changed_.NotifyAll();
  const std::string key = PartitionKey(id_);
  // From the beginning, for a file that went may have held an earlier range's end.
  const std::string begin = EventKey(id_, 0), end = EventKey(id_, first);
  ::rocksdb::ColumnFamilyHandle* const events = context_.database->family(kEvents);
  ::rocksdb::WriteBatch batch;
  batch.Put(context_.database->family(kMeta), key, EncodePartition(record, key));
  batch.DeleteRange(events, begin, end);
  MUSTER_RETURN_IF_ERROR(context_.database->Write(&batch, muster::rocksdb::Durability::kPower));
  return RemoveEventFiles(*context_.database, begin, end);
}

absl::Status RemoveEventFiles(const muster::rocksdb::Database& database, const std::string& begin,
                              const std::string& end) {
  const ::rocksdb::Slice from(begin), to(end);
  return muster::rocksdb::ToStatus(
      ::rocksdb::DeleteFilesInRange(database.db(), database.family(kEvents), &from, &to,
                                    /*include_end=*/false),
      "removing the files of events");
}

void PartitionLog::Close() {
  base::MutexLock sweep(&sweep_mu_);
  base::MutexLock lock(&mu_);
  closed_ = true;
  changed_.NotifyAll();
}

// --- readers ---

namespace {

class LogReader final : public PartitionReader {
 public:
  LogReader(std::shared_ptr<PartitionLog> log, int64_t place)
      : log_(std::move(log)), place_(place) {}

  absl::StatusOr<std::vector<Event>> Next(int max_events, absl::Duration wait) override {
    MUSTER_RETURN_IF_ERROR(ValidateRead(max_events));
    for (;;) {
      MUSTER_ASSIGN_OR_RETURN(PartitionLog::Found found,
                              log_->Read(place_, max_events, wait, cancelled_));
      const bool passed = std::exchange(place_, found.next) != found.next;
      if (!found.events.empty() || !passed) return std::move(found.events);
    }
  }

  void Cancel() override { log_->Cancel(&cancelled_); }

 private:
  const std::shared_ptr<PartitionLog> log_;  // shared with the store, which may delete the stream
  int64_t place_;
  std::atomic<bool> cancelled_ = false;  // written under the log's lock
};

}  // namespace

std::unique_ptr<PartitionReader> ReadFrom(std::shared_ptr<PartitionLog> log, int64_t offset) {
  return std::make_unique<LogReader>(std::move(log), offset);
}

}  // namespace muster::stream::rocksdb
