// SPDX-License-Identifier: Apache-2.0

// How blobs lie in JetStream, and the bounds of that, each with its reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "nlohmann/json_fwd.hpp"

namespace muster::blob::jetstream {

// The chunk size of NATS's own tools, and well below the payload that servers allow (1 MiB).
inline constexpr size_t kChunkBytes = size_t{128} << 10;
// On top of that come the subject and headers of a chunk, or of the answer that returns it.
inline constexpr size_t kChunkOverheadBytes = 1024;

// Chunks under way to the server without its acknowledgement: enough that the wait for it is short
// compared to the transfer, few enough that they fit into every buffer on the way.
inline constexpr size_t kWindowChunks = 16;

// Each further try means that another Put of the same blob came between, so one of them makes
// progress.
inline constexpr int kMaxTries = 100;

// Chunks without metadata count as those of a Put that died when they are older than this. A Put of
// the largest blob takes minutes, and the clocks of machines differ by less than this.
inline constexpr absl::Duration kOrphanAge = absl::Hours(24);

// Blobs lie in an object bucket of NATS (ADR-20), which any NATS tool reads:
//
//   stream OBJ_<bucket>
//   subject $O.<bucket>.C.<nuid>              the blob's bytes, in messages of up to 128 KiB
//   subject $O.<bucket>.M.<base64url(name)>   one message: what follows, as JSON
//
//   {"name": "b", "bucket": "muster", "nuid": "muster-…", "size": 300000, "chunks": 3,
//    "digest": "SHA-256=<base64url>", "mtime": "0001-01-01T00:00:00Z",
//    "options": {"max_chunk_size": 131072}}
//
// A nuid belongs to one Put. Readers take it as any token; one of muster's tells when it was made:
//
//   muster-<milliseconds since 1970, 12 hexadecimal digits>-<16 random ones>
//
// `mtime` has no meaning: readers take the message's time. `"deleted": true` is what tools leave of
// a deleted blob. The header Nats-Rollup: sub makes new metadata replace the old.

struct ObjectInfo {
  std::string name;
  std::string bucket;
  std::string nuid;
  uint64_t size = 0;  // bytes
  uint64_t chunks = 0;
  std::string digest;  // DigestOf the bytes
  bool deleted = false;
};

std::string EncodeObject(const ObjectInfo& info);
// DataLoss: not the metadata of an object.
absl::StatusOr<ObjectInfo> DecodeObject(absl::string_view text);

// "SHA-256=…".
std::string DigestOf(absl::string_view bytes);

std::string MakeNuid(absl::Time now);
// When the nuid was made, if muster made it; nullopt for any other.
std::optional<absl::Time> TimeOfNuid(absl::string_view nuid);

std::string StreamOf(absl::string_view bucket);
// `nuid` or `name` may be ">", which matches all.
std::string ChunkSubject(absl::string_view bucket, absl::string_view nuid);
std::string MetaSubject(absl::string_view bucket, absl::string_view name);

// The stream's configuration, for EnsureStream.
nlohmann::json BucketConfig(absl::string_view bucket, int replicas);

}  // namespace muster::blob::jetstream
