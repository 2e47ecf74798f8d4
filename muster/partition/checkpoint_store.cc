// SPDX-License-Identifier: Apache-2.0
#include "muster/partition/checkpoint_store.h"

#include "absl/strings/str_cat.h"
#include "muster/base/status.h"
#include "muster/partition/records.h"
#include "muster/v1/partition_record.pb.h"

namespace muster::partition {
namespace {

// Of a change that is not the owner's.
constexpr int64_t kAnyEpoch = -1;

absl::StatusOr<v1::PartitionCheckpoint> Decode(const sync::VersionedData& stored) {
  v1::PartitionCheckpoint record;
  if (!record.ParseFromString(stored.data) || record.epoch() < 0) {
    return absl::DataLossError("the checkpoint makes no sense");
  }
  return record;
}

Checkpoint FromProto(const v1::PartitionCheckpoint& record) {
  return {.offset = record.offset(),
          .sequence = record.sequence(),
          .replays = record.replays(),
          .incarnation = record.incarnation()};
}

absl::Status CheckKnowsReplays(const Checkpoint& checkpoint, const Checkpoint& stored) {
  if (checkpoint.replays >= stored.replays) return absl::OkStatus();
  return absl::AbortedError(
      absl::StrCat("a replay has moved the checkpoint to offset ", stored.offset));
}

}  // namespace

CheckpointStore::CheckpointStore(sync::OptimisticSyncStore* store, absl::string_view group)
    : store_(store), group_(group) {}

absl::StatusOr<std::optional<Checkpoint>> CheckpointStore::Load(int partition) {
  const std::string key = CheckpointKey(group_, partition);
  MUSTER_ASSIGN_OR_RETURN(const sync::VersionedData read, store_->Get(key));
  if (read.version == sync::kAbsent) return std::nullopt;
  const absl::StatusOr<v1::PartitionCheckpoint> record = Decode(read);
  if (!record.ok()) return base::Annotate(record.status(), key);
  return Checkpoint{.offset = record->offset(), .sequence = record->sequence()};
}

absl::StatusOr<Checkpoint> CheckpointStore::Begin(int partition, int64_t epoch) {
  return Update(partition, epoch, [](Checkpoint*) { return absl::OkStatus(); });
}

absl::Status CheckpointStore::Save(int partition, int64_t epoch, const Checkpoint& checkpoint) {
  return Update(
             partition, epoch,
             [&checkpoint](Checkpoint* stored) {
               MUSTER_RETURN_IF_ERROR(CheckKnowsReplays(checkpoint, *stored));
               if (checkpoint.offset < stored->offset || checkpoint.sequence < stored->sequence) {
                 return absl::InvalidArgumentError(
                     absl::StrCat("offset ", checkpoint.offset, " lies before ", stored->offset,
                                  "; only Rewind moves a checkpoint back"));
               }
               *stored = checkpoint;
               return absl::OkStatus();
             })
      .status();
}

absl::Status CheckpointStore::Rewind(int partition, int64_t epoch, const Checkpoint& checkpoint) {
  return Update(partition, epoch,
                [&checkpoint](Checkpoint* stored) {
                  MUSTER_RETURN_IF_ERROR(CheckKnowsReplays(checkpoint, *stored));
                  *stored = checkpoint;
                  return absl::OkStatus();
                })
      .status();
}

absl::StatusOr<Checkpoint> CheckpointStore::Read(int partition) {
  const std::string key = CheckpointKey(group_, partition);
  const absl::StatusOr<sync::VersionedData> read = store_->Get(key);
  if (!read.ok()) return base::Annotate(read.status(), key);
  const absl::StatusOr<v1::PartitionCheckpoint> record = Decode(*read);
  if (!record.ok()) return base::Annotate(record.status(), key);
  return FromProto(*record);
}

absl::Status CheckpointStore::Replay(int partition, int64_t offset, int64_t sequence,
                                     uint64_t incarnation) {
  // An attempt whose outcome is unknown is repeated; counting it twice changes nothing.
  return Update(partition, kAnyEpoch,
                [offset, sequence, incarnation](Checkpoint* stored) {
                  *stored = {.offset = offset,
                             .sequence = sequence,
                             .replays = stored->replays + 1,
                             .incarnation = incarnation};
                  return absl::OkStatus();
                })
      .status();
}

absl::StatusOr<Checkpoint> CheckpointStore::Update(int partition, int64_t epoch,
                                                   const Change& change) {
  const std::string key = CheckpointKey(group_, partition);
  absl::Status unknown;
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    Checkpoint stored;
    const absl::StatusOr<bool> done = TryUpdate(key, epoch, change, &stored);
    if (done.ok() && *done) return stored;
    // After a write whose outcome is unknown, the next attempt reads the record back.
    const bool again =
        done.ok() || absl::IsUnavailable(done.status()) || absl::IsDeadlineExceeded(done.status());
    if (!again) return base::Annotate(done.status(), key);
    unknown = done.status();
  }
  if (!unknown.ok()) return base::Annotate(unknown, key);
  return absl::AbortedError(absl::StrCat(key, ": others were first ", kMaxAttempts, " times"));
}

absl::StatusOr<bool> CheckpointStore::TryUpdate(const std::string& key, int64_t epoch,
                                                const Change& change, Checkpoint* stored) {
  MUSTER_ASSIGN_OR_RETURN(const sync::VersionedData read, store_->Get(key));
  MUSTER_ASSIGN_OR_RETURN(v1::PartitionCheckpoint record, Decode(read));
  if (epoch != kAnyEpoch && record.epoch() > epoch) {
    return absl::FailedPreconditionError(
        absl::StrCat("epoch ", epoch, " lost the partition to epoch ", record.epoch()));
  }
  *stored = FromProto(record);
  MUSTER_RETURN_IF_ERROR(change(stored));
  if (epoch != kAnyEpoch) record.set_epoch(epoch);
  record.set_offset(stored->offset);
  record.set_sequence(stored->sequence);
  record.set_replays(stored->replays);
  record.set_incarnation(stored->incarnation);
  const std::string data = record.SerializeAsString();
  if (data == read.data && read.version != sync::kAbsent) return true;
  return store_->TryWrite(key, data, read.version);
}

}  // namespace muster::partition
