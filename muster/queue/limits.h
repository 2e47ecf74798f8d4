// SPDX-License-Identifier: Apache-2.0

// Every bound of the queue engines, with its reason. Every caller meets these bounds. The REST
// gateway adds the limits of its own contract (64 KiB of text, 32 messages).
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "muster/queue/queue_store.h"

namespace muster::queue {

// Azure Queue Storage gives at most 32 messages a call, and one fsync for 32 already amortises
// well.
inline constexpr int kMaxReceive = 32;
// A put is one atomic write: bounded so that one caller cannot hold the log for long.
inline constexpr int kMaxPutMessages = 1024;
inline constexpr size_t kMaxPutBytes = size_t{64} << 20;
// Larger bodies are claim-checked to a blob: a queue is for work, not for files.
inline constexpr size_t kMaxBodyBytes = size_t{1} << 20;
// Azure's seven days bound how long a crashed holder can hide a message.
inline constexpr absl::Duration kMaxVisibility = absl::Hours(24 * 7);
inline constexpr absl::Duration kMinReceiveVisibility = absl::Milliseconds(1);
// Of AwaitMessage: an engine that forgets to end a wait holds it no longer.
inline constexpr absl::Duration kMaxWait = absl::Hours(1);
inline constexpr absl::Duration kMaxDelay = absl::Hours(24 * 7);
// How long a dedup id is remembered after its put, even when its message is gone by then. It is
// longer than a producer keeps repeating a put with an unknown outcome.
inline constexpr absl::Duration kDedupWindow = absl::Minutes(10);
// Of a queue with a window of its own. Each put of the window costs some 100 bytes of disk.
inline constexpr absl::Duration kMaxDedupWindow = absl::Hours(24 * 7);
inline constexpr size_t kMaxDedupIdBytes = 128;
inline constexpr size_t kMaxHolderBytes = 256;        // of a receive; it is kept with each lease
inline constexpr size_t kMaxMetadataBytes = 8 << 10;  // names and values together (Azure)
inline constexpr size_t kMaxReasonBytes = 4 << 10;    // of a poison cause; longer ones are cut
// Of one Scan: many enough that a call to a server pays, and few enough to hold in memory. Up to
// kMaxReceive messages may come behind the one that reaches the bytes.
inline constexpr int kMaxScan = 256;
inline constexpr size_t kMaxScanBytes = size_t{4} << 20;
inline constexpr int kMaxListQueues = 5000;
inline constexpr int kMaxListPoison = 1000;
inline constexpr int kMaxFindPoison = 32;  // the answer has all bodies, each of up to kMaxBodyBytes
inline constexpr int kMaxSettle =
    1024;  // receipts in one Update, Delete, BeginAttempt or DeadLetter

// Each Validate function returns OK, or InvalidArgument naming the field and its bounds.

// 3–63 characters of [a-z0-9-], no leading, trailing or double dash; the account 1–63 likewise.
absl::Status ValidateQueueId(const QueueId& queue);
// Names are not empty; names and values together stay within kMaxMetadataBytes; a value under
// kVisibilityName (queue_store.h) is a valid visibility, one under kDedupWindowName a valid window.
absl::Status ValidateMetadata(const Metadata& metadata);
absl::Status ValidateNewMessage(const NewMessage& message);
// Checks each message, the number of messages and their total bytes.
absl::Status ValidatePut(absl::Span<const NewMessage> messages);
// Also used for Peek.
absl::Status ValidateReceiveCount(int max_messages, const Traits& traits);
absl::Status ValidateReceive(const ReceiveOptions& options, const Traits& traits);
absl::Status ValidateWait(absl::Duration patience);
absl::Status ValidateVisibilityUpdate(absl::Duration visibility);
// Checks everything in the request except its receipt.
absl::Status ValidateUpdate(const UpdateRequest& request);
// `count`: number of receipts or requests in one Update, Delete, BeginAttempt or DeadLetter.
absl::Status ValidateSettle(size_t count);
absl::Status ValidateScan(int max);
absl::Status ValidateListPoison(int max_messages);
absl::Status ValidateFindPoison(size_t count);
absl::Status ValidateMove(absl::Span<const MoveRequest> requests);
absl::Status ValidateListQueues(const ListQueuesRequest& request);

// Returns `reason` cut to kMaxReasonBytes, never inside a UTF-8 character.
std::string CutReason(absl::string_view reason);

}  // namespace muster::queue
