// SPDX-License-Identifier: Apache-2.0
#include "muster/blob/jetstream/jetstream_blob_store.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "muster/base/check.h"
#include "muster/base/damage.h"
#include "muster/base/log.h"
#include "muster/base/status.h"
#include "muster/nats/names.h"
#include "muster/nats/status.h"
#include "nlohmann/json.hpp"

namespace muster::blob::jetstream {

namespace {

absl::Status WriteWindow(nats::JetStream* jetstream, const std::string& subject,
                         absl::string_view window) {
  std::vector<nats::Outgoing> messages;
  for (size_t at = 0; at < window.size(); at += kChunkBytes) {
    messages.push_back({.subject = subject, .data = window.substr(at, kChunkBytes)});
  }
  MUSTER_ASSIGN_OR_RETURN(const auto acks, jetstream->Publish(messages));
  MUSTER_CHECK(acks.size() == messages.size(), "acks ", acks.size(), ", chunks ", messages.size());
  for (const auto& ack : acks) MUSTER_RETURN_IF_ERROR(ack.status());
  return absl::OkStatus();
}

// The number of chunks that `bytes` make. The bytes of a blob are chunks on a subject of their own.
size_t ChunksOf(size_t bytes) { return (bytes + kChunkBytes - 1) / kChunkBytes; }

// Publishes `data` in order, kWindowChunks at a time. OK: the server has acknowledged each of them.
absl::Status WriteChunks(nats::JetStream* jetstream, const std::string& subject,
                         absl::string_view data) {
  constexpr size_t kWindowBytes = kWindowChunks * kChunkBytes;
  for (size_t at = 0; at < data.size(); at += kWindowBytes) {
    MUSTER_RETURN_IF_ERROR(WriteWindow(jetstream, subject, data.substr(at, kWindowBytes)));
  }
  return absl::OkStatus();
}

// DataLoss: chunks are missing, or the bytes are not what `info` says. On top of JetStream's own
// statuses.
absl::StatusOr<std::string> ReadChunks(nats::JetStream* jetstream, const ObjectInfo& info) {
  MUSTER_CHECK(info.size <= blob::kMaxBlobBytes, "blob '", info.name, "', bytes ", info.size);
  const std::string stream = StreamOf(info.bucket);
  const std::string subject = ChunkSubject(info.bucket, info.nuid);
  std::string data;
  data.reserve(info.size);
  uint64_t next = 1;
  for (uint64_t i = 0; i < info.chunks; ++i) {
    const auto chunk = jetstream->NextMessage(stream, next, subject);
    if (nats::ErrorCodeOf(chunk.status()) == nats::kNoMessageFound) {
      return absl::DataLossError(
          absl::StrCat("only ", i, " of ", info.chunks, " chunks are there"));
    }
    MUSTER_RETURN_IF_ERROR(chunk.status());
    // Before it is appended: damage must not make it grow without bound.
    if (chunk->data.size() > info.size - data.size()) {
      return absl::DataLossError(absl::StrCat("there are more than ", info.size, " bytes"));
    }
    data += chunk->data;
    next = chunk->sequence + 1;
  }
  if (data.size() != info.size) {
    return absl::DataLossError(
        absl::StrCat("there are ", data.size(), " bytes instead of ", info.size));
  }
  if (DigestOf(data) != info.digest) return absl::DataLossError("its digest does not match");
  return data;
}

// The nuids of existing chunks, of muster's Puts that began before `before`.
absl::StatusOr<std::vector<std::string>> OldNuids(nats::JetStream* jetstream,
                                                  absl::string_view bucket, absl::Time before) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> subjects,
                          jetstream->Subjects(StreamOf(bucket), ChunkSubject(bucket, ">")));
  const std::string prefix = ChunkSubject(bucket, "");
  std::vector<std::string> old;
  for (const std::string& subject : subjects) {
    const absl::string_view nuid = absl::StripPrefix(subject, prefix);
    const std::optional<absl::Time> made = TimeOfNuid(nuid);
    if (made.has_value() && *made < before) old.emplace_back(nuid);
  }
  return old;
}

// The nuids that metadata names.
absl::StatusOr<absl::flat_hash_set<std::string>> NamedNuids(nats::JetStream* jetstream,
                                                            absl::string_view bucket) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> subjects,
                          jetstream->Subjects(StreamOf(bucket), MetaSubject(bucket, ">")));
  absl::flat_hash_set<std::string> named;
  for (const std::string& subject : subjects) {
    const auto message = jetstream->LastMessage(StreamOf(bucket), subject);
    if (nats::ErrorCodeOf(message.status()) == nats::kNoMessageFound)
      continue;  // deleted meanwhile
    MUSTER_RETURN_IF_ERROR(message.status());
    const auto info = DecodeObject(message->data);
    if (!info.ok()) {
      return absl::FailedPreconditionError(
          absl::StrCat("what ", subject, " names: ", info.status().message()));
    }
    named.insert(info->nuid);
  }
  return named;
}

}  // namespace

absl::StatusOr<size_t> RemoveOrphans(nats::JetStream* jetstream, absl::string_view bucket,
                                     absl::Time before) {
  MUSTER_ASSIGN_OR_RETURN(const nats::StreamState state, jetstream->GetStream(StreamOf(bucket)));
  if (state.messages == 0 || state.first_time >= before) return 0;
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> old, OldNuids(jetstream, bucket, before));
  if (old.empty()) return 0;
  // Read after the chunks, because a Put writes its metadata after its chunks, too.
  MUSTER_ASSIGN_OR_RETURN(const auto named, NamedNuids(jetstream, bucket));
  size_t removed = 0;
  for (const std::string& nuid : old) {
    if (named.contains(nuid)) continue;
    MUSTER_RETURN_IF_ERROR(jetstream->Purge(StreamOf(bucket), ChunkSubject(bucket, nuid)).status());
    ++removed;
  }
  return removed;
}

namespace {

std::string Naming(absl::string_view name) { return absl::StrCat("blob '", name, "'"); }

absl::Status CheckPayload(const nats::Connection& connection) {
  const int64_t needed = kChunkBytes + kChunkOverheadBytes;
  if (connection.max_payload() >= needed) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the NATS server takes messages of ", connection.max_payload(),
                   " bytes; set its max_payload to ", needed, " or more"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<JetStreamBlobStore>> JetStreamBlobStore::Open(
    nats::Connection* connection, const Options& options) {
  MUSTER_RETURN_IF_ERROR(nats::ValidateBucket(options.bucket));
  MUSTER_RETURN_IF_ERROR(CheckPayload(*connection));
  std::unique_ptr<JetStreamBlobStore> store(new JetStreamBlobStore(connection, options));
  const absl::Status made = store->provisioner_.Ensure();
  if (!made.ok()) return base::Annotate(made, absl::StrCat("blob bucket '", options.bucket, "'"));
  store->RemoveOldOrphans();
  return store;
}

JetStreamBlobStore::JetStreamBlobStore(nats::Connection* connection, const Options& options)
    : bucket_(options.bucket),
      clock_(options.clock),
      make_nuid_(options.make_nuid),
      jetstream_(connection, options.timeout),
      provisioner_(&jetstream_, BucketConfig(options.bucket, options.replicas), options.clock) {}

// Orphans cost only room, so the store opens even if they cannot be removed.
void JetStreamBlobStore::RemoveOldOrphans() {
  const auto removed = RemoveOrphans(&jetstream_, bucket_, clock_->Now() - kOrphanAge);
  if (!removed.ok()) {
    base::Log(base::kWarning, "the chunks of interrupted puts could not be removed",
              {{"bucket", bucket_}, {"why", removed.status().ToString()}});
  } else if (*removed > 0) {
    base::Log(base::kInfo, "removed the chunks of interrupted puts",
              {{"bucket", bucket_}, {"puts", *removed}});
  }
}

absl::Status JetStreamBlobStore::Put(absl::string_view name, absl::string_view data) {
  MUSTER_RETURN_IF_ERROR(blob::ValidateBlobName(name));
  MUSTER_RETURN_IF_ERROR(blob::ValidateBlobSize(name, data.size()));
  ObjectInfo info = {.name = std::string(name),
                     .bucket = bucket_,
                     .nuid = make_nuid_(clock_->Now()),
                     .size = data.size(),
                     .chunks = ChunksOf(data.size()),
                     .digest = DigestOf(data)};
  absl::Status status = WriteAll(data, &info);
  std::string replaced;
  if (status.ok()) {
    absl::StatusOr<std::string> committed = Commit(info);
    status = committed.status();
    if (committed.ok()) replaced = *std::move(committed);
  }
  if (status.ok()) {
    RemoveChunks(replaced);
    return absl::OkStatus();
  }
  // Without an answer the metadata may exist, or still arrive, and name the chunks.
  if (!absl::IsUnavailable(status)) RemoveChunks(info.nuid);
  return base::Annotate(status, absl::StrCat("putting ", Naming(name)));
}

absl::Status JetStreamBlobStore::WriteAll(absl::string_view data, ObjectInfo* info) {
  const absl::Status written = WriteChunks(&jetstream_, ChunkSubject(bucket_, info->nuid), data);
  if (!nats::IsNobodyListens(written)) return written;
  MUSTER_RETURN_IF_ERROR(provisioner_.OnMissing());
  // Another process may have made the bucket while the chunks were under way: then the later ones
  // of them are stored, and must not be read as chunks of this attempt.
  return nats::WriteOnceHeard([&] {
    RemoveChunks(std::exchange(info->nuid, make_nuid_(clock_->Now())));
    return WriteChunks(&jetstream_, ChunkSubject(bucket_, info->nuid), data);
  });
}

absl::StatusOr<std::string> JetStreamBlobStore::Commit(const ObjectInfo& info) {
  const std::string text = EncodeObject(info);
  for (int i = 0; i < kMaxTries; ++i) {
    MUSTER_ASSIGN_OR_RETURN(const Meta before, ReadMeta(info.name));
    // Only over the metadata that was just read: so each Put knows what it replaced, and of two
    // that put the same blob at once neither leaves its chunks behind.
    const auto ack = jetstream_.Publish(
        {.subject = MetaSubject(bucket_, info.name),
         .headers = {{nats::kRollup, nats::kRollupSubject},
                     {nats::kExpectedLastSubjectSequence, absl::StrCat(before.sequence)}},
         .data = text});
    if (nats::ErrorCodeOf(ack.status()) == nats::kWrongLastSequence) continue;
    MUSTER_RETURN_IF_ERROR(ack.status());
    return before.info.ok() ? before.info->nuid : "";
  }
  return absl::AbortedError(
      absl::StrCat("others put the same blob ", kMaxTries, " times in between"));
}

absl::StatusOr<nats::StoredMessage> JetStreamBlobStore::ReadLastMeta(absl::string_view name) {
  const std::string subject = MetaSubject(bucket_, name);
  auto message = jetstream_.LastMessage(StreamOf(bucket_), subject);
  if (!nats::IsNoStream(message.status())) return message;
  MUSTER_RETURN_IF_ERROR(provisioner_.OnMissing());
  return jetstream_.LastMessage(StreamOf(bucket_), subject);
}

absl::StatusOr<JetStreamBlobStore::Meta> JetStreamBlobStore::ReadMeta(absl::string_view name) {
  const auto message = ReadLastMeta(name);
  if (nats::ErrorCodeOf(message.status()) == nats::kNoMessageFound) return Meta();
  MUSTER_RETURN_IF_ERROR(message.status());
  Meta meta{.sequence = message->sequence, .info = DecodeObject(message->data)};
  if (meta.info.ok() && meta.info->deleted) meta.info = Meta().info;
  // The record may name another bucket, but only this bucket's chunks are to be read and removed.
  if (meta.info.ok()) meta.info->bucket = bucket_;
  return meta;
}

absl::StatusOr<std::string> JetStreamBlobStore::Get(absl::string_view name) {
  MUSTER_RETURN_IF_ERROR(blob::ValidateBlobName(name));
  uint64_t read_before = 0;
  absl::Status damage;
  for (int i = 0; i < kMaxTries; ++i) {
    const absl::StatusOr<Meta> meta = ReadMeta(name);
    if (!meta.ok()) return base::Annotate(meta.status(), Naming(name));
    if (meta->sequence == read_before || absl::IsDataLoss(meta->info.status())) {
      base::NoteDamage(base::Damaged::kBlob);
    }
    if (!meta->info.ok()) return base::Annotate(meta->info.status(), Naming(name));
    if (meta->sequence == read_before) return damage;
    absl::StatusOr<std::string> data = ReadObject(*meta->info);
    if (data.ok()) return data;
    // Another Put may have replaced the blob meanwhile, and removed the chunks during the read.
    damage = base::Annotate(data.status(), Naming(name));
    if (!absl::IsDataLoss(damage)) return damage;
    read_before = meta->sequence;
  }
  return absl::AbortedError(
      absl::StrCat(Naming(name), " was replaced ", kMaxTries, " times while it was read"));
}

absl::StatusOr<std::string> JetStreamBlobStore::ReadObject(const ObjectInfo& info) {
  const absl::Status size = blob::ValidateBlobSize(info.name, info.size);
  if (!size.ok()) return absl::DataLossError(size.message());
  return ReadChunks(&jetstream_, info);
}

absl::Status JetStreamBlobStore::Delete(absl::string_view name) {
  MUSTER_RETURN_IF_ERROR(blob::ValidateBlobName(name));
  const absl::StatusOr<Meta> before = ReadMeta(name);
  if (!before.ok()) return base::Annotate(before.status(), Naming(name));
  if (before->sequence == 0) return absl::OkStatus();
  // Deletes only the metadata that was read: a Put that comes now is newer than this Delete.
  const auto deleted =
      jetstream_.Purge(StreamOf(bucket_), MetaSubject(bucket_, name), before->sequence);
  if (!deleted.ok()) {
    return base::Annotate(deleted.status(), absl::StrCat("deleting ", Naming(name)));
  }
  if (before->info.ok()) RemoveChunks(before->info->nuid);
  return absl::OkStatus();
}

namespace {

class JetStreamBlobScan final : public BlobScan {
 public:
  // `jetstream` is not owned.
  JetStreamBlobScan(nats::JetStream* jetstream, const std::string& bucket)
      : jetstream_(jetstream), stream_(StreamOf(bucket)), subjects_(MetaSubject(bucket, ">")) {}

  absl::StatusOr<std::vector<BlobEntry>> Next(size_t max) override {
    std::vector<BlobEntry> page;
    while (page.size() < max) {
      const auto message = jetstream_->NextMessage(stream_, next_, subjects_);
      // The blobs of a bucket that is gone are gone, too.
      if (absl::IsNotFound(message.status())) break;
      MUSTER_RETURN_IF_ERROR(message.status());
      next_ = message->sequence + 1;
      const absl::StatusOr<ObjectInfo> info = DecodeObject(message->data);
      // What other tools have left, or cannot be read, is no blob of muster's.
      if (!info.ok() || info->deleted || !blob::ValidateBlobName(info->name).ok()) continue;
      page.push_back({info->name, message->time});
    }
    return page;
  }

 private:
  nats::JetStream* const jetstream_;  // not owned
  const std::string stream_;
  const std::string subjects_;
  uint64_t next_ = 1;  // sequence
};

}  // namespace

absl::StatusOr<std::unique_ptr<BlobScan>> JetStreamBlobStore::Scan() {
  RemoveOldOrphans();
  return std::make_unique<JetStreamBlobScan>(&jetstream_, bucket_);
}

void JetStreamBlobStore::RemoveChunks(absl::string_view nuid) {
  if (nuid.empty()) return;
  // A wildcard would remove the chunks of all blobs.
  MUSTER_CHECK(nuid.find_first_of("*>") == absl::string_view::npos, "nuid '", nuid, "'");
  (void)jetstream_.Purge(StreamOf(bucket_), ChunkSubject(bucket_, nuid));
}

}  // namespace muster::blob::jetstream
