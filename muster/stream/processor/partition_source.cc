// SPDX-License-Identifier: Apache-2.0
#include "muster/stream/processor/partition_source.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status.h"

namespace muster::stream::processor {

PartitionSource::PartitionSource(Setup setup) : setup_(std::move(setup)) {}

absl::Status PartitionSource::Open() {
  MUSTER_ASSIGN_OR_RETURN(checkpoint_, setup_.checkpoints->Begin(setup_.partition, setup_.epoch));
  next_ = checkpoint_.offset;
  return OpenReader();
}

absl::Status PartitionSource::OpenReader() {
  MUSTER_ASSIGN_OR_RETURN(const PartitionExtent extent,
                          setup_.store->Extent(setup_.stream, setup_.partition));
  if (next_ == 0) MUSTER_RETURN_IF_ERROR(BeginWithoutCheckpoint(extent));
  if (IsAnew(extent) || next_ > extent.next) MUSTER_RETURN_IF_ERROR(BeginAgain(extent));
  if (moved_) return absl::OkStatus();
  // Once it is open, other threads may read it.
  if (!opened_) checkpoint_.incarnation = extent.incarnation;
  const int64_t wanted = next_;
  const int64_t place = std::max(wanted, extent.first);
  MUSTER_ASSIGN_OR_RETURN(std::shared_ptr<PartitionReader> reader,
                          setup_.store->OpenReader(setup_.stream, setup_.partition, place));
  next_ = place;
  // Told once the reader is open: a call that fails is repeated.
  if (next_ > wanted) TellOfLoss(wanted);
  opened_ = true;
  base::MutexLock lock(&mu_);
  reader_ = std::move(reader);
  return absl::OkStatus();
}

void PartitionSource::TellOfLoss(int64_t wanted) {
  const int64_t lost = next_ - wanted;
  setup_.on_gap({.partition = setup_.partition,
                 .operation = ProcessorError::Operation::kRetention,
                 .status = absl::OutOfRangeError(absl::StrCat("retention has removed ", lost,
                                                              " events from offset ", wanted,
                                                              " on before they were handled")),
                 .events_lost = lost});
}

absl::Status PartitionSource::BeginWithoutCheckpoint(const PartitionExtent& extent) {
  switch (setup_.begin.kind) {
    case BeginAt::Kind::kEarliest:
      next_ = extent.first;
      return absl::OkStatus();
    case BeginAt::Kind::kOffset:
      next_ = std::clamp(setup_.begin.offset, extent.first, extent.next);
      return absl::OkStatus();
    case BeginAt::Kind::kLatest:
      break;
  }
  const partition::Checkpoint latest{.offset = extent.next,
                                     .sequence = extent.next - 1,
                                     .replays = checkpoint_.replays,
                                     .incarnation = extent.incarnation};
  MUSTER_RETURN_IF_ERROR(setup_.checkpoints->Save(setup_.partition, setup_.epoch, latest));
  next_ = extent.next;
  return absl::OkStatus();
}

bool PartitionSource::IsAnew(const PartitionExtent& extent) const {
  const bool both_told = extent.incarnation != 0 && checkpoint_.incarnation != 0;
  return both_told && extent.incarnation != checkpoint_.incarnation;
}

// Better twice than never: what the stream holds now has other offsets than what was handled. A
// checkpoint of an event that was read before would skip as many new ones, so it is refused as
// after a replay.
absl::Status PartitionSource::BeginAgain(const PartitionExtent& extent) {
  if (opened_) {
    MUSTER_ASSIGN_OR_RETURN(moved_, WasReplayed());
    if (moved_) return absl::OkStatus();
  }
  const partition::Checkpoint again{.offset = extent.first,
                                    .sequence = extent.first - 1,
                                    .replays = checkpoint_.replays + (opened_ ? 1 : 0),
                                    .incarnation = extent.incarnation};
  MUSTER_RETURN_IF_ERROR(setup_.checkpoints->Rewind(setup_.partition, setup_.epoch, again));
  moved_ = opened_;
  // The next source of the partition finds no gap any more, so this one tells of it.
  setup_.on_gap({.partition = setup_.partition,
                 .operation = ProcessorError::Operation::kBeyondEnd,
                 .status = absl::OutOfRangeError(
                     IsAnew(extent)
                         ? absl::StrCat("the stream was made anew; it is read from offset ",
                                        extent.first, ", and not from ", next_)
                         : absl::StrCat("offset ", next_, " lies beyond the end, ", extent.next,
                                        ": the stream was made anew or has lost events; it is read "
                                        "from offset ",
                                        extent.first))});
  next_ = extent.first;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Event>> PartitionSource::Read(int max_events, absl::Duration wait) {
  std::shared_ptr<PartitionReader> reader;
  {
    base::MutexLock lock(&mu_);
    if (cancelled_ || moved_) return std::vector<Event>();
    reader = reader_;
  }
  if (reader == nullptr) {
    MUSTER_RETURN_IF_ERROR(OpenReader());
    return std::vector<Event>();
  }
  absl::StatusOr<std::vector<Event>> events = reader->Next(max_events, wait);
  // The next call opens another at what is kept. A server that is back may say by mistake that
  // there is no such stream; whether it was made anew, its incarnation tells.
  if (absl::IsOutOfRange(events.status()) || absl::IsNotFound(events.status())) {
    base::MutexLock lock(&mu_);
    reader_ = nullptr;
    if (absl::IsNotFound(events.status())) return events.status();
    return std::vector<Event>();
  }
  // An event of a format that this muster does not know says nothing of who owns the partition.
  if (absl::IsFailedPrecondition(events.status())) {
    return absl::UnimplementedError(events.status().message());
  }
  if (!events.ok() || events->empty()) return events;
  TellOfGaps(*events);
  next_ = events->back().offset + 1;
  return events;
}

void PartitionSource::TellOfGaps(const std::vector<Event>& events) {
  int64_t expected = next_;
  for (const Event& event : events) {
    const int64_t lost = event.offset - expected;
    if (lost > 0) {
      setup_.on_gap({.partition = setup_.partition,
                     .operation = ProcessorError::Operation::kLost,
                     .status = absl::DataLossError(
                         absl::StrCat(lost, " events from offset ", expected, " on are lost")),
                     .events_lost = lost});
    }
    expected = event.offset + 1;
  }
}

void PartitionSource::Cancel() {
  std::shared_ptr<PartitionReader> reader;
  {
    base::MutexLock lock(&mu_);
    cancelled_ = true;
    reader = reader_;
  }
  if (reader != nullptr) reader->Cancel();
}

absl::StatusOr<bool> PartitionSource::WasReplayed() {
  MUSTER_ASSIGN_OR_RETURN(const partition::Checkpoint stored,
                          setup_.checkpoints->Read(setup_.partition));
  return stored.replays > checkpoint_.replays;
}

}  // namespace muster::stream::processor
