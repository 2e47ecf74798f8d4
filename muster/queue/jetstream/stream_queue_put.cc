// SPDX-License-Identifier: Apache-2.0

// Put of StreamQueue.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/status.h"
#include "muster/queue/jetstream/stream_layout.h"
#include "muster/queue/jetstream/stream_queue.h"
#include "nlohmann/json.hpp"

namespace muster::queue::jetstream {
namespace {

// Limits on the messages, and their bytes, that are on their way to the server: they bound the
// memory that a slow server can make this process hold.
constexpr size_t kWindowMessages = 256;
constexpr size_t kWindowBytes = size_t{8} << 20;
// For fewer messages, one by one is as fast (bench/README.md): an atomic batch costs the server a
// folder, and 2 ms, before its first message.
constexpr size_t kMinAtomicMessages = 16;
constexpr absl::string_view kOwnIds = "muster.";  // prefix of the ids that this engine makes itself
constexpr absl::string_view kEncoded = "base64.";

// Returns how many of `messages` are sent together.
size_t WindowOf(absl::Span<const queue::NewMessage> messages) {
  size_t count = 0;
  for (size_t bytes = 0; count < std::min(messages.size(), kWindowMessages); ++count) {
    bytes += messages[count].body.size();
    if (count > 0 && bytes > kWindowBytes) break;
  }
  return count;
}

// A dedup id may be any bytes, but servers and clients trim and fold header values, so other ids
// are encoded.
std::string MessageIdFor(const std::string& dedup_id) {
  const bool is_plain = std::all_of(dedup_id.begin(), dedup_id.end(), absl::ascii_isgraph);
  if (is_plain && !absl::StartsWith(dedup_id, kOwnIds) && !absl::StartsWith(dedup_id, kEncoded)) {
    return dedup_id;
  }
  return absl::StrCat(kEncoded, absl::WebSafeBase64Escape(dedup_id));
}

// Once any message is stored, or may be, the result must be Unavailable: other errors mean that
// nothing was put.
absl::Status PutFailed(bool nothing_was_put, const absl::Status& why) {
  if (nothing_was_put || absl::IsUnavailable(why)) return why;
  return absl::UnavailableError(absl::StrCat("only a part was put: ", why.ToString()));
}

// Whether the stream has refused all of a window. The messages of a window are on their way
// together, so that those behind one that is refused may be stored.
bool AllRefused(absl::Span<const absl::StatusOr<nats::PubAck>> acks) {
  return std::all_of(acks.begin(), acks.end(), [](const absl::StatusOr<nats::PubAck>& ack) {
    return !ack.ok() && !absl::IsUnavailable(ack.status());
  });
}

}  // namespace

// Without syncs the server would take longer for a batch than for its messages: it writes them
// twice.
bool StreamQueue::TakesAtomicBatches() {
  if (!options_->settings.atomic_puts) return false;
  const int64_t connection = jetstream_->connection()->reconnects();
  if (asked_over_ != connection) {
    const auto stream = jetstream_->StreamConfig(StreamOf(id_));
    if (!stream.ok()) return false;
    takes_atomic_batches_ = stream->value(nats::kAllowAtomic, false);
    asked_over_ = connection;
  }
  return takes_atomic_batches_;
}

absl::StatusOr<std::vector<absl::StatusOr<nats::PubAck>>> StreamQueue::PutTogether(
    absl::Span<const nats::Outgoing> window) {
  if (window.size() >= kMinAtomicMessages && TakesAtomicBatches()) {
    const absl::StatusOr<std::vector<nats::PubAck>> acks = jetstream_->PublishAtomically(window);
    if (acks.ok()) return std::vector<absl::StatusOr<nats::PubAck>>(acks->begin(), acks->end());
    if (!nats::IsAtomicRefusal(acks.status())) return acks.status();
    if (nats::ErrorCodeOf(acks.status()) == nats::kAtomicNotAllowed) takes_atomic_batches_ = false;
  }
  return jetstream_->Publish(window);
}

absl::StatusOr<std::vector<queue::PutResult>> StreamQueue::Put(
    absl::Span<const queue::NewMessage> messages) {
  const absl::Time now = options_->clock->Now();
  const std::string subject = SubjectOf(id_);
  std::vector<queue::PutResult> results;
  while (results.size() < messages.size()) {
    const auto window =
        messages.subspan(results.size(), WindowOf(messages.subspan(results.size())));
    std::vector<nats::Outgoing> outgoing;
    for (const queue::NewMessage& message : window) {
      nats::Outgoing& next = outgoing.emplace_back();
      next.subject = subject;
      next.data = message.body;
      if (!message.dedup_id.empty())
        next.headers = {{"Nats-Msg-Id", MessageIdFor(message.dedup_id)}};
    }
    const bool is_first = results.empty();
    const auto acks = PutTogether(outgoing);
    if (!acks.ok()) return PutFailed(is_first, acks.status());
    MUSTER_CHECK(acks->size() == window.size(), "acks ", acks->size(), ", messages ",
                 window.size());
    for (const absl::StatusOr<nats::PubAck>& ack : *acks) {
      if (!ack.ok()) return PutFailed(is_first && AllRefused(*acks), ack.status());
      const queue::NewMessage& message = messages[results.size()];
      queue::PutResult& result = results.emplace_back();
      result.message_id = MessageIdOf(id_, ack->sequence);
      result.position = ack->sequence;
      result.duplicate = ack->duplicate;
      if (ack->duplicate) continue;  // the server does not say when the first was put
      result.receipt = ReceiptOfPut(id_, ack->sequence, message.body);
      result.insertion_time = result.next_visible_time = now;
      result.expiration_time = absl::InfiniteFuture();
    }
  }
  return results;
}

}  // namespace muster::queue::jetstream
