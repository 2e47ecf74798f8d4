// Every bound of the queue, with its reason. The REST contract's own limits (64 KiB of text, 32
// messages) are the gateway's; these are the engine's, which every caller meets.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/queue/queue_store.h"

namespace muster::queue {

// Azure Queue Storage gives at most 32 messages a call, and one fsync for 32 already amortises well.
inline constexpr int kMaxReceive = 32;
// A put is one atomic write: bounded so that one caller cannot hold the log for long.
inline constexpr int kMaxPutMessages = 1024;
inline constexpr size_t kMaxPutBytes = size_t{64} << 20;
// Larger bodies are claim-checked to a blob: a queue is for work, not for files.
inline constexpr size_t kMaxBodyBytes = size_t{1} << 20;
// Azure's seven days bound how long a crashed holder can hide a message.
inline constexpr absl::Duration kMaxVisibility = absl::Hours(24 * 7);
inline constexpr absl::Duration kMinReceiveVisibility = absl::Milliseconds(1);
inline constexpr absl::Duration kMaxDelay = absl::Hours(24 * 7);
inline constexpr absl::Duration kDefaultTtl = absl::Hours(24 * 7);
// How long a dedup id is remembered after its message is gone.
inline constexpr absl::Duration kDedupWindow = absl::Minutes(10);
inline constexpr size_t kMaxDedupIdBytes = 128;
inline constexpr size_t kMaxMetadataBytes = 8 << 10;  // names and values together (Azure)
inline constexpr size_t kMaxReasonBytes = 4 << 10;    // of a poison cause; longer ones are cut
inline constexpr int kMaxListQueues = 5000;
inline constexpr int kMaxListPoison = 1000;
inline constexpr int kMaxSettle = 1024;  // receipts in one Update, Delete or DeadLetter

// 3–63 characters of [a-z0-9-], no leading, trailing or double dash; the account 1–63 likewise.
absl::Status ValidateQueueId(const QueueId& queue);
absl::Status ValidateMetadata(const Metadata& metadata);
absl::Status ValidateNewMessage(const NewMessage& message);
absl::Status ValidateReceive(const ReceiveOptions& options, const Traits& traits);
absl::Status ValidateVisibilityUpdate(absl::Duration visibility);

}  // namespace muster::queue
