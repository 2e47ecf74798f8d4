// SPDX-License-Identifier: Apache-2.0
#include "muster/sync/jetstream/jetstream_sync_store.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "muster/base/status.h"
#include "muster/nats/names.h"
#include "muster/nats/status.h"
#include "nlohmann/json.hpp"

namespace muster::sync::jetstream {

namespace {

constexpr absl::string_view kEscapedDot = "=2E";
constexpr absl::string_view kEscapedUnderscore = "=5F";
constexpr absl::string_view kReservedPrefix = "_kv";

// NATS's own default, which its tools set. Nothing here sends a message id.
constexpr absl::Duration kDuplicateWindow = absl::Minutes(2);

}  // namespace

std::string StreamOf(absl::string_view bucket) { return absl::StrCat("KV_", bucket); }

std::string SubjectOf(absl::string_view bucket, absl::string_view key) {
  return absl::StrCat("$KV.", bucket, ".", EscapeKey(key));
}

std::string EscapeKey(absl::string_view key) {
  std::string escaped;
  for (size_t i = 0; i < key.size(); ++i) {
    const bool alone = i > 0 && i + 1 < key.size() && key[i - 1] != '.';
    if (key[i] == '.' && !alone) {
      absl::StrAppend(&escaped, kEscapedDot);
    } else if (i == 0 && absl::StartsWith(key, kReservedPrefix)) {
      absl::StrAppend(&escaped, kEscapedUnderscore);
    } else {
      escaped += key[i];
    }
  }
  return escaped;
}

std::string UnescapeKey(absl::string_view escaped) {
  return absl::StrReplaceAll(escaped, {{kEscapedDot, "."}, {kEscapedUnderscore, "_"}});
}

nlohmann::json BucketConfig(absl::string_view bucket, int replicas) {
  return {{"name", StreamOf(bucket)},
          {"subjects", {absl::StrCat("$KV.", bucket, ".>")}},
          {"storage", "file"},
          {"retention", "limits"},
          {"num_replicas", replicas},
          {"max_msgs_per_subject", 1},
          // A record never vanishes by itself: an id generator would begin again at 1.
          {"max_msgs", -1},
          {"max_age", 0},
          // A write that finds no room fails, it does not push out another record. So an
          // administrator may bound the bytes.
          {"discard", "new"},
          {"duplicate_window", absl::ToInt64Nanoseconds(kDuplicateWindow)},
          // Otherwise a replica that lags behind could answer a read.
          {"allow_direct", false},
          {"allow_rollup_hdrs", true},
          {"deny_delete", true}};
}

bool MarksDeletion(absl::Span<const nats::Header> headers) {
  return std::any_of(headers.begin(), headers.end(), [](const nats::Header& header) {
    return absl::EqualsIgnoreCase(header.name, "KV-Operation") &&
           (header.value == "DEL" || header.value == "PURGE");
  });
}

namespace {

std::string Naming(absl::string_view doing, absl::string_view key) {
  return absl::StrCat(doing, " sync record '", key, "'");
}

}  // namespace

absl::StatusOr<std::unique_ptr<JetStreamSyncStore>> JetStreamSyncStore::Open(
    nats::Connection* connection, const Options& options) {
  MUSTER_RETURN_IF_ERROR(nats::ValidateBucket(options.bucket));
  std::unique_ptr<JetStreamSyncStore> store(new JetStreamSyncStore(connection, options));
  MUSTER_RETURN_IF_ERROR(
      base::Annotate(store->PrepareBucket(), absl::StrCat("sync bucket '", options.bucket, "'")));
  return store;
}

JetStreamSyncStore::JetStreamSyncStore(nats::Connection* connection, const Options& options)
    : bucket_(options.bucket),
      read_only_(options.read_only),
      jetstream_(connection, options.timeout),
      provisioner_(&jetstream_, BucketConfig(bucket_, options.replicas), options.clock) {}

absl::Status JetStreamSyncStore::PrepareBucket() {
  if (read_only_) return jetstream_.GetStream(StreamOf(bucket_)).status();
  return provisioner_.Ensure();
}

absl::StatusOr<sync::VersionedData> JetStreamSyncStore::Get(absl::string_view key) {
  MUSTER_RETURN_IF_ERROR(sync::ValidateKey(key));
  MUSTER_ASSIGN_OR_RETURN(Stored stored, Read(key));
  return std::move(stored.record);
}

absl::StatusOr<bool> JetStreamSyncStore::TryWrite(absl::string_view key, absl::string_view data,
                                                  uint64_t version) {
  MUSTER_RETURN_IF_ERROR(sync::ValidateKey(key));
  MUSTER_RETURN_IF_ERROR(sync::ValidateData(key, data));
  if (read_only_) {
    return absl::FailedPreconditionError(
        absl::StrCat(Naming("writing", key), ": the store is open for reading only"));
  }
  MUSTER_ASSIGN_OR_RETURN(const bool written, WriteOver(key, data, version));
  if (written || version != sync::kAbsent) return written;
  // A deleted key counts as absent; the write must then replace the deletion marker.
  MUSTER_ASSIGN_OR_RETURN(const Stored stored, Read(key));
  if (stored.record.version != sync::kAbsent || stored.sequence == 0) return false;
  return WriteOver(key, data, stored.sequence);
}

// A purge up to the record's sequence: what another writer has put meanwhile lies behind it and
// stays.
absl::StatusOr<bool> JetStreamSyncStore::TryDelete(absl::string_view key, uint64_t version) {
  MUSTER_RETURN_IF_ERROR(sync::ValidateKey(key));
  if (read_only_) {
    return absl::FailedPreconditionError(
        absl::StrCat(Naming("removing", key), ": the store is open for reading only"));
  }
  MUSTER_ASSIGN_OR_RETURN(const Stored stored, Read(key));
  if (version == sync::kAbsent || stored.record.version != version) return false;
  const absl::StatusOr<int64_t> purged =
      jetstream_.Purge(StreamOf(bucket_), SubjectOf(bucket_, key), version);
  if (!purged.ok()) return base::Annotate(purged.status(), Naming("removing", key));
  return *purged > 0;
}

absl::StatusOr<nats::StoredMessage> JetStreamSyncStore::ReadLast(absl::string_view key) {
  const auto read = [&] {
    return jetstream_.LastMessage(StreamOf(bucket_), SubjectOf(bucket_, key));
  };
  absl::StatusOr<nats::StoredMessage> message = read();
  if (!nats::IsNoStream(message.status())) return message;
  // A missing bucket must not look like missing records: the caller would believe it.
  if (read_only_) {
    return absl::FailedPreconditionError(
        absl::StrCat("the bucket is gone: ", message.status().message()));
  }
  MUSTER_RETURN_IF_ERROR(provisioner_.OnMissing());
  return read();
}

absl::StatusOr<JetStreamSyncStore::Stored> JetStreamSyncStore::Read(absl::string_view key) {
  absl::StatusOr<nats::StoredMessage> message = ReadLast(key);
  if (nats::ErrorCodeOf(message.status()) == nats::kNoMessageFound) return Stored();
  if (!message.ok()) return base::Annotate(message.status(), Naming("reading", key));
  Stored stored;
  stored.sequence = message->sequence;
  if (MarksDeletion(message->headers)) return stored;
  stored.record = {.data = std::move(message->data), .version = message->sequence};
  return stored;
}

absl::StatusOr<bool> JetStreamSyncStore::WriteOver(absl::string_view key, absl::string_view data,
                                                   uint64_t sequence) {
  const auto write = [&] {
    return jetstream_.Publish(
        {.subject = SubjectOf(bucket_, key),
         .headers = {{nats::kExpectedLastSubjectSequence, absl::StrCat(sequence)}},
         .data = data});
  };
  absl::StatusOr<nats::PubAck> ack = write();
  if (nats::IsNobodyListens(ack.status())) {
    if (const absl::Status there = provisioner_.OnMissing(); !there.ok()) {
      return base::Annotate(there, Naming("writing", key));
    }
    nats::WriteOnceHeard([&] {
      ack = write();
      return ack.status();
    }).IgnoreError();
  }
  if (nats::ErrorCodeOf(ack.status()) == nats::kWrongLastSequence) return false;
  if (!ack.ok()) return base::Annotate(ack.status(), Naming("writing", key));
  return true;
}

}  // namespace muster::sync::jetstream
