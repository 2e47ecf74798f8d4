#include "muster/blob/jetstream/chunks.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/blob/jetstream/limits.h"

namespace muster::blob::jetstream {
namespace {

absl::Status WriteWindow(nats::JetStream* jetstream, const std::string& subject,
                         absl::string_view window) {
  std::vector<nats::Outgoing> messages;
  for (size_t at = 0; at < window.size(); at += kChunkBytes) {
    messages.push_back({.subject = subject, .data = window.substr(at, kChunkBytes)});
  }
  MUSTER_ASSIGN_OR_RETURN(const auto acks, jetstream->Publish(messages));
  for (const auto& ack : acks) MUSTER_RETURN_IF_ERROR(ack.status());
  return absl::OkStatus();
}

}  // namespace

size_t ChunksOf(size_t bytes) { return (bytes + kChunkBytes - 1) / kChunkBytes; }

absl::Status WriteChunks(nats::JetStream* jetstream, const std::string& subject,
                         absl::string_view data) {
  constexpr size_t kWindowBytes = kWindowChunks * kChunkBytes;
  for (size_t at = 0; at < data.size(); at += kWindowBytes) {
    MUSTER_RETURN_IF_ERROR(WriteWindow(jetstream, subject, data.substr(at, kWindowBytes)));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadChunks(nats::JetStream* jetstream, const ObjectInfo& info) {
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

}  // namespace muster::blob::jetstream
