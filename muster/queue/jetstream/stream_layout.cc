// SPDX-License-Identifier: Apache-2.0
#include "muster/queue/jetstream/stream_layout.h"

#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "muster/base/fingerprint.h"
#include "muster/base/status.h"
#include "muster/nats/names.h"
#include "nlohmann/json.hpp"

namespace muster::queue::jetstream {

namespace {

constexpr absl::string_view kStreamPrefix = "MUSTER_";

// Number of slots per queue in which attempts are noted, by sequence. No more messages than this
// are in flight (kMaxAckPending), so two messages rarely need the same slot.
constexpr uint64_t kAttemptSlots = 1 << 16;
constexpr uint64_t kAttemptPages = kAttemptSlots / kPageMessages;

std::string Dotted(absl::string_view what, const queue::QueueId& queue) {
  return absl::StrCat("muster.", what, ".", queue.account, ".", queue.name);
}

// The part of an id that names the queue: the head of a GUID of version 8.
std::string IdHead(const queue::QueueId& queue) {
  const uint64_t sum = base::Fingerprint(queue.ToString()).high;
  return absl::StrFormat("%08x-%04x-8%03x", sum >> 32, sum >> 16 & 0xffff, sum & 0xfff);
}

}  // namespace

std::string StreamOf(const queue::QueueId& queue) {
  return absl::StrCat(kStreamPrefix, queue.account, "_", queue.name);
}

std::string SubjectOf(const queue::QueueId& queue) { return Dotted("queue", queue); }

std::string AsideStreamOf(const queue::QueueId& queue) {
  return absl::StrCat("MUSTER-ASIDE_", queue.account, "_", queue.name);
}

std::string MetadataSubjectOf(const queue::QueueId& queue) { return Dotted("metadata", queue); }

MessageKey KeyOf(uint64_t sequence, absl::Time stored) {
  return {sequence, absl::ToUnixNanos(stored)};
}

std::string PoisonSubjectOf(const queue::QueueId& queue, const MessageKey& key) {
  std::string subject = absl::StrCat(Dotted("poison", queue), ".", key.sequence);
  if (key.stored_ns != 0) absl::StrAppend(&subject, "-", absl::Hex(key.stored_ns));
  return subject;
}

std::string PoisonSubjectsOf(const queue::QueueId& queue) {
  return absl::StrCat(Dotted("poison", queue), ".*");
}

std::optional<MessageKey> PoisonKeyOf(absl::string_view subject) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(subject.substr(subject.rfind('.') + 1), absl::MaxSplits('-', 1));
  MessageKey key;
  if (!absl::SimpleAtoi(parts.first, &key.sequence)) return std::nullopt;
  if (!parts.second.empty() && !absl::SimpleHexAtoi(parts.second, &key.stored_ns)) {
    return std::nullopt;
  }
  return key;
}

std::string AttemptSubjectOf(const queue::QueueId& queue, uint64_t sequence) {
  return absl::StrCat(Dotted("attempts", queue), ".", sequence % kAttemptSlots);
}

std::string AttemptPageSubjectOf(const queue::QueueId& queue, uint64_t sequence) {
  return absl::StrCat(Dotted("attempts", queue), ".p", PageOf(sequence) % kAttemptPages);
}

std::string AttemptSubjectsOf(const queue::QueueId& queue) {
  return absl::StrCat(Dotted("attempts", queue), ".*");
}

std::string AliveSubjectOf(absl::string_view holder) {
  return absl::StrCat("muster.alive.", nats::SubjectToken(holder));
}

std::string HeldSubjectsOf(absl::string_view holder) {
  return absl::StrCat("muster.held.", nats::SubjectToken(holder), ".>");
}

std::string HeldSubjectOf(absl::string_view holder, const queue::QueueId& queue, int slot) {
  return absl::StrCat("muster.held.", nats::SubjectToken(holder), ".", queue.account, ".",
                      queue.name, ".", slot);
}

std::string HeldNotesOf(absl::string_view holder) {
  return absl::StrCat("muster.held.", nats::SubjectToken(holder), ".*.*.*");
}

std::string HeldNotesOfQueue(const queue::QueueId& queue) {
  return absl::StrCat("muster.held.*.", queue.account, ".", queue.name, ".*");
}

std::string GivenBackSubjectOf(absl::string_view holder) {
  return absl::StrCat("muster.held.", nats::SubjectToken(holder), ".given-back");
}

std::optional<queue::QueueId> QueueOfHeld(absl::string_view subject) {
  const std::vector<std::string> tokens = absl::StrSplit(subject, '.');
  if (tokens.size() != 6) return std::nullopt;
  return queue::QueueId{tokens[3], tokens[4]};
}

std::string IncarnationOf(const nats::StreamState& stream) {
  return absl::StrCat(absl::Hex(absl::ToUnixNanos(stream.created)));
}

std::optional<queue::QueueId> QueueOfStream(absl::string_view stream) {
  if (!absl::ConsumePrefix(&stream, kStreamPrefix)) return std::nullopt;
  const size_t cut = stream.find('_');
  if (cut == absl::string_view::npos) return std::nullopt;
  return queue::QueueId{std::string(stream.substr(0, cut)), std::string(stream.substr(cut + 1))};
}

std::string MessageIdOf(const queue::QueueId& queue, uint64_t sequence) {
  return absl::StrFormat("%s-8%03x-%012x", IdHead(queue), sequence >> 48,
                         sequence & ((uint64_t{1} << 48) - 1));
}

std::optional<uint64_t> SequenceOf(const queue::QueueId& queue, absl::string_view message_id) {
  const std::string head = absl::StrCat(IdHead(queue), "-8");
  uint64_t high = 0, low = 0;
  absl::string_view rest = message_id;
  if (!absl::ConsumePrefix(&rest, head) || rest.size() != 16 || rest[3] != '-' ||
      !absl::SimpleHexAtoi(rest.substr(0, 3), &high) ||
      !absl::SimpleHexAtoi(rest.substr(4), &low)) {
    return std::nullopt;
  }
  const uint64_t sequence = high << 48 | low;
  return MessageIdOf(queue, sequence) == message_id ? std::optional<uint64_t>(sequence)
                                                    : std::nullopt;
}

namespace {

using nlohmann::json;

// Limit of unacknowledged deliveries, over all processes: at the limit the server delivers nothing
// more. A message that was given back with a delay counts until it is settled, so this is also the
// number of messages that may wait for other workers beside those in work. Each costs the server
// some hundred bytes. As many as there are slots for attempts.
constexpr int64_t kMaxAckPending = kAttemptSlots;
// Limit of pulls that wait at the server.
constexpr int64_t kMaxWaiting = 512;
// Notes are small, and worthless once they are old. Each task that took a part of a page writes a
// note of it.
constexpr int kMaxRecordsOfPage = 8;
constexpr int64_t kMaxAttemptsBytes = int64_t{64} << 20;
constexpr absl::Duration kMaxAttemptsAge = absl::Hours(24 * 7);

// Room for the notes of some thousand pages, and for the longest lease that a host takes.
constexpr int64_t kMaxHeldBytes = int64_t{16} << 20;
constexpr absl::Duration kMaxHeldAge = absl::Hours(24);

int64_t Nanoseconds(absl::Duration duration) { return absl::ToInt64Nanoseconds(duration); }

}  // namespace

json StreamSettings(const queue::QueueId& queue, const Settings& settings) {
  json stream = {
      {"name", StreamOf(queue)},
      {"subjects", {SubjectOf(queue)}},
      {"storage", "file"},
      {"num_replicas", settings.replicas},
      {"retention", "workqueue"},
      {"discard", "new"},
      {"max_age", 0},
      {"duplicate_window", Nanoseconds(settings.dedup_window)},
  };
  // A server that does not know the setting may refuse it.
  if (settings.atomic_puts) stream[nats::kAllowAtomic] = true;
  return stream;
}

json ConsumerSettings(absl::Duration lease) {
  return {
      {"durable_name", kConsumer},
      {"ack_policy", "explicit"},
      {"ack_wait", Nanoseconds(lease)},
      {"deliver_policy", "all"},
      {"replay_policy", "instant"},
      {"max_deliver", -1},  // muster itself counts attempts and gives messages up
      {"max_ack_pending", kMaxAckPending},
      {"max_waiting", kMaxWaiting},
  };
}

json AsideStreamSettings(const queue::QueueId& queue, const Settings& settings) {
  return {
      {"name", AsideStreamOf(queue)},
      {"subjects", {MetadataSubjectOf(queue), PoisonSubjectsOf(queue)}},
      {"storage", "file"},
      {"num_replicas", settings.replicas},
      {"retention", "limits"},
      {"discard", "new"},
      {"max_age", 0},  // poison waits for an operator
      {"max_msgs_per_subject", 1},
  };
}

json AttemptsStreamSettings(const Settings& settings) {
  return {
      {"name", kAttemptsStream},
      {"subjects", {"muster.attempts.>"}},
      {"storage", "memory"},
      // Handlers cannot start without this stream, so it must survive the loss of one server of a
      // cluster.
      {"num_replicas", settings.replicas},
      {"retention", "limits"},
      {"discard", "old"},
      {"max_age", Nanoseconds(kMaxAttemptsAge)},
      {"max_bytes", kMaxAttemptsBytes},
      {"max_msgs_per_subject", kMaxRecordsOfPage},
  };
}

json HeldStreamSettings(const Settings& settings) {
  return {
      {"name", kHeldStream},
      {"subjects", {"muster.held.>"}},
      {"storage", "memory"},
      {"num_replicas", settings.replicas},
      {"retention", "limits"},
      {"discard", "old"},
      {"max_age", Nanoseconds(kMaxHeldAge)},
      {"max_bytes", kMaxHeldBytes},
      {"max_msgs_per_subject", 1},
  };
}

namespace {

constexpr absl::string_view kPutPrefix = "put.";
// Enough to distinguish a receipt from other text; it is no secret.
constexpr size_t kSumBytes = 8;

std::string SumOf(const queue::QueueId& queue, absl::string_view content) {
  const uint64_t sum = base::Fingerprint(absl::StrCat(queue.ToString(), "\n", content)).low;
  return absl::StrCat(absl::Hex(sum, absl::kZeroPad16)).substr(0, kSumBytes);
}

queue::Receipt Seal(const queue::QueueId& queue, absl::string_view content) {
  return absl::WebSafeBase64Escape(absl::StrCat(SumOf(queue, content), content));
}

}  // namespace

namespace {

// $JS.ACK.STREAM.CONSUMER.DELIVERIES.SEQUENCE.CONSUMER_SEQUENCE.NANOSECONDS.PENDING, or with the
// domain and the account before the stream, and perhaps a token of chance at the end. Empty: it is
// none.
std::vector<absl::string_view> AckTokens(absl::string_view subject) {
  std::vector<absl::string_view> tokens = absl::StrSplit(subject, '.');
  if (tokens.size() < 9 || tokens.size() == 10) return {};
  if (tokens[0] != "$JS" || tokens[1] != "ACK") return {};
  if (tokens.size() > 9) tokens.erase(tokens.begin() + 2, tokens.begin() + 4);
  return tokens;
}

}  // namespace

absl::StatusOr<Delivery> ParseAckSubject(absl::string_view subject) {
  const std::vector<absl::string_view> tokens = AckTokens(subject);
  Delivery delivery;
  int64_t nanoseconds = 0;
  if (tokens.empty() || !absl::SimpleAtoi(tokens[4], &delivery.deliveries) ||
      !absl::SimpleAtoi(tokens[5], &delivery.sequence) ||
      !absl::SimpleAtoi(tokens[7], &nanoseconds)) {
    return absl::InvalidArgumentError(absl::StrCat("'", subject, "' acknowledges no delivery"));
  }
  delivery.ack_subject = std::string(subject);
  delivery.stored = absl::FromUnixNanos(nanoseconds);
  return delivery;
}

std::string AckSubjectOf(const queue::QueueId& queue, uint64_t sequence, uint64_t delivery) {
  return absl::StrCat("$JS.ACK.", StreamOf(queue), ".", kConsumer, ".1.", sequence, ".", delivery,
                      ".0.0");
}

absl::string_view StreamOfAck(absl::string_view subject) {
  const std::vector<absl::string_view> tokens = AckTokens(subject);
  return tokens.empty() ? "" : tokens[2];
}

namespace {

// Whether a subject, which may be of a stranger, acknowledges a delivery of the queue, and does
// nothing else: what is published to another subject may do anything on the server.
bool IsOfConsumer(const queue::QueueId& queue, absl::string_view subject) {
  const std::vector<absl::string_view> tokens = AckTokens(subject);
  return !tokens.empty() && tokens[2] == StreamOf(queue) && tokens[3] == kConsumer &&
         nats::ValidateSubject(subject).ok();
}

}  // namespace

std::string AgainAfter(absl::Duration delay) {
  if (delay <= absl::ZeroDuration()) return kAtOnceAgain;
  return absl::StrCat(kAtOnceAgain, " {\"delay\": ", absl::ToInt64Nanoseconds(delay), "}");
}

queue::Receipt ReceiptOf(const queue::QueueId& queue, const Delivery& delivery) {
  return Seal(queue, delivery.ack_subject);
}

std::string BodySumOf(absl::string_view body) {
  return absl::StrCat(absl::Hex(base::Fingerprint(body).low));
}

queue::Receipt ReceiptOfPut(const queue::QueueId& queue, uint64_t sequence,
                            absl::string_view body) {
  return Seal(queue, absl::StrCat(kPutPrefix, sequence, ".", BodySumOf(body)));
}

absl::StatusOr<ReadReceipt> ParseReceipt(const queue::QueueId& queue, absl::string_view receipt) {
  const absl::Status refused =
      absl::InvalidArgumentError(absl::StrCat("not a receipt of queue '", queue.ToString(), "'"));
  std::string bytes;
  if (!absl::WebSafeBase64Unescape(receipt, &bytes) || bytes.size() <= kSumBytes) return refused;
  absl::string_view content = absl::string_view(bytes).substr(kSumBytes);
  if (SumOf(queue, content) != bytes.substr(0, kSumBytes)) return refused;
  ReadReceipt read;
  if (absl::ConsumePrefix(&content, kPutPrefix)) {
    read.of_put = true;
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(content, absl::MaxSplits('.', 1));
    if (!absl::SimpleAtoi(parts.first, &read.delivery.sequence)) return refused;
    read.body_sum = std::string(parts.second);
    return read;
  }
  if (!IsOfConsumer(queue, content)) return refused;
  MUSTER_ASSIGN_OR_RETURN(read.delivery, ParseAckSubject(content));
  return read;
}

}  // namespace muster::queue::jetstream
