// SPDX-License-Identifier: Apache-2.0
#include "muster/queue/jetstream/dead_letter_store.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "muster/base/status.h"
#include "muster/queue/jetstream/stream_layout.h"
#include "muster/queue/limits.h"
#include "nlohmann/json.hpp"

namespace muster::queue::jetstream {
namespace {

using nlohmann::json;

constexpr char kCauseHeader[] = "Muster-Cause";
// The cause and all other headers stay below the space that a body leaves free
// (jetstream_queue_store.cc).
constexpr size_t kMaxCauseBytes = 6 << 10;
constexpr size_t kMaxHolderBytes = 256;

// JSON in base64: a header is one line, and a reason is arbitrary text. Escaping may make the text
// longer than the space there is.
std::string EncodeCause(const queue::Cause& cause, absl::Time insertion) {
  json object = {{"attempts", cause.attempts},
                 {"holder", cause.holder.substr(0, kMaxHolderBytes)},
                 {"time_ns", absl::ToUnixNanos(cause.time)},
                 {"insertion_ns", absl::ToUnixNanos(insertion)}};
  std::string reason = queue::CutReason(cause.reason);
  for (;; reason.resize(reason.size() / 2)) {
    object["reason"] = reason;
    std::string encoded =
        absl::Base64Escape(object.dump(-1, ' ', false, json::error_handler_t::replace));
    if (encoded.size() <= kMaxCauseBytes || reason.empty()) return encoded;
  }
}

// A message from another program or an older muster has no readable cause; it is shown all the
// same.
void DecodeCause(const std::string& header, queue::PoisonMessage* message) {
  std::string text;
  const json object = absl::Base64Unescape(header, &text)
                          ? json::parse(text, nullptr, /*allow_exceptions=*/false)
                          : json();
  const auto number = [&object](const char* field) {
    const auto found = object.find(field);
    return found != object.end() && found->is_number() ? found->get<int64_t>() : 0;
  };
  const auto words = [&object](const char* field) {
    const auto found = object.find(field);
    return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  if (!object.is_object()) return;
  message->cause.reason = words("reason");
  message->cause.attempts = static_cast<int>(number("attempts"));
  message->cause.holder = words("holder");
  message->cause.time = absl::FromUnixNanos(number("time_ns"));
  message->insertion_time = absl::FromUnixNanos(number("insertion_ns"));
}

// In an id, the bits above those of the sequence: 0 for the newest message of a sequence. They
// differ nearly always between messages that were stored at different times.
constexpr int kSequenceBits = 48;
constexpr uint64_t kMaxMark = 0xfff;

uint64_t MarkOf(const MessageKey& key) {
  return 1 + static_cast<uint64_t>(key.stored_ns / 1000) % kMaxMark;
}

// The id of keys[place]; `keys` are all, in order.
std::string IdOf(const queue::QueueId& queue, absl::Span<const MessageKey> keys, size_t place) {
  const MessageKey& key = keys[place];
  const bool newest = place + 1 == keys.size() || keys[place + 1].sequence != key.sequence;
  return MessageIdOf(queue, newest ? key.sequence : key.sequence | MarkOf(key) << kSequenceBits);
}

// The place of the message with this number in its id; if it is gone, that of the one behind it.
size_t PlaceOf(absl::Span<const MessageKey> keys, uint64_t number) {
  const uint64_t sequence = number & ((uint64_t{1} << kSequenceBits) - 1);
  const uint64_t mark = number >> kSequenceBits;
  const auto begin = std::lower_bound(keys.begin(), keys.end(), MessageKey{sequence, 0});
  const auto end = std::lower_bound(begin, keys.end(), MessageKey{sequence + 1, 0});
  if (begin == end) return begin - keys.begin();
  if (mark == 0) return end - 1 - keys.begin();
  const auto found =
      std::find_if(begin, end, [&](const MessageKey& key) { return MarkOf(key) == mark; });
  return found - keys.begin();
}

// The message of this id; nullopt: it is not among `keys`.
std::optional<MessageKey> FindId(const queue::QueueId& queue, absl::Span<const MessageKey> keys,
                                 absl::string_view id) {
  const std::optional<uint64_t> number = SequenceOf(queue, id);
  if (!number.has_value()) return std::nullopt;
  const size_t place = PlaceOf(keys, *number);
  if (place == keys.size() || IdOf(queue, keys, place) != id) return std::nullopt;
  return keys[place];
}

queue::PoisonMessage Show(std::string id, const nats::StoredMessage& stored) {
  queue::PoisonMessage message;
  message.message_id = std::move(id);
  message.body = stored.data;
  message.insertion_time = message.cause.time = stored.time;
  for (const nats::Header& header : stored.headers) {
    if (header.name == kCauseHeader) DecodeCause(header.value, &message);
  }
  return message;
}

// Returns the error only when nothing was redriven.
absl::StatusOr<int64_t> Redriven(int64_t count, const absl::Status& failure) {
  if (count > 0) return count;
  return failure;
}

}  // namespace

absl::Status DeadLetterStore::Add(const queue::QueueId& queue, const nats::StoredMessage& message,
                                  const queue::Cause& cause) {
  return jetstream_
      ->Publish({.subject = PoisonSubjectOf(queue, KeyOf(message.sequence, message.time)),
                 .headers = {{kCauseHeader, EncodeCause(cause, message.time)}},
                 .data = message.data})
      .status();
}

absl::StatusOr<std::vector<MessageKey>> DeadLetterStore::Keys(const queue::QueueId& queue) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> subjects,
                          jetstream_->Subjects(AsideStreamOf(queue), PoisonSubjectsOf(queue)));
  std::vector<MessageKey> keys;
  for (const std::string& subject : subjects) {
    if (const auto key = PoisonKeyOf(subject); key.has_value()) keys.push_back(*key);
  }
  std::sort(keys.begin(), keys.end());
  return keys;
}

absl::StatusOr<std::vector<queue::PoisonMessage>> DeadLetterStore::List(const queue::QueueId& queue,
                                                                        absl::string_view after,
                                                                        int max_messages) {
  const std::optional<uint64_t> number = after.empty() ? 0 : SequenceOf(queue, after);
  if (!number.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", after, "' is no message of queue '", queue.ToString(), "'"));
  }
  MUSTER_ASSIGN_OR_RETURN(const std::vector<MessageKey> all, Keys(queue));
  size_t place = after.empty() ? 0 : PlaceOf(all, *number);
  if (place < all.size() && IdOf(queue, all, place) == after) ++place;
  std::vector<queue::PoisonMessage> page;
  for (; place < all.size() && page.size() < static_cast<size_t>(max_messages); ++place) {
    const auto stored =
        jetstream_->LastMessage(AsideStreamOf(queue), PoisonSubjectOf(queue, all[place]));
    if (absl::IsNotFound(stored.status())) continue;  // redriven meanwhile
    MUSTER_RETURN_IF_ERROR(stored.status());
    page.push_back(Show(IdOf(queue, all, place), *stored));
  }
  return page;
}

absl::StatusOr<int64_t> DeadLetterStore::Redrive(const queue::QueueId& queue,
                                                 absl::Span<const std::string> ids,
                                                 int64_t max_messages) {
  MUSTER_ASSIGN_OR_RETURN(std::vector<MessageKey> keys, Keys(queue));
  if (ids.empty()) {
    keys.resize(std::min(keys.size(), static_cast<size_t>(std::max<int64_t>(0, max_messages))));
    return RedriveAll(queue, keys);
  }
  std::vector<MessageKey> named;
  for (const std::string& id : ids) {
    if (const auto key = FindId(queue, keys, id); key.has_value()) named.push_back(*key);
  }
  return RedriveAll(queue, named);
}

absl::StatusOr<int64_t> DeadLetterStore::RedriveAll(const queue::QueueId& queue,
                                                    absl::Span<const MessageKey> keys) {
  int64_t redriven = 0;
  for (const MessageKey& key : keys) {
    const auto stored = jetstream_->LastMessage(AsideStreamOf(queue), PoisonSubjectOf(queue, key));
    if (absl::IsNotFound(stored.status())) continue;
    if (!stored.ok()) return Redriven(redriven, stored.status());
    // Put, then delete. After a crash between the two steps the next redrive does both again; the
    // message id makes the second put a duplicate.
    const nats::Outgoing copy{
        .subject = SubjectOf(queue),
        .headers = {{"Nats-Msg-Id",
                     absl::StrCat("muster.redrive.", key.sequence, ".", stored->sequence)}},
        .data = stored->data};
    if (const auto put = jetstream_->Publish(copy); !put.ok()) {
      return Redriven(redriven, put.status());
    }
    const absl::Status deleted = jetstream_->DeleteMessage(AsideStreamOf(queue), stored->sequence);
    if (!deleted.ok() && !absl::IsNotFound(deleted)) return Redriven(redriven, deleted);
    ++redriven;
  }
  return redriven;
}

absl::StatusOr<int64_t> DeadLetterStore::Purge(const queue::QueueId& queue) {
  return jetstream_->Purge(AsideStreamOf(queue), PoisonSubjectsOf(queue));
}

absl::StatusOr<int64_t> DeadLetterStore::Drop(const queue::QueueId& queue,
                                              absl::Span<const std::string> ids) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<MessageKey> keys, Keys(queue));
  int64_t dropped = 0;
  for (const std::string& id : ids) {
    const std::optional<MessageKey> key = FindId(queue, keys, id);
    if (!key.has_value()) continue;
    MUSTER_ASSIGN_OR_RETURN(const int64_t purged,
                            jetstream_->Purge(AsideStreamOf(queue), PoisonSubjectOf(queue, *key)));
    dropped += purged;
  }
  return dropped;
}

absl::StatusOr<int64_t> DeadLetterStore::Count(const queue::QueueId& queue) {
  MUSTER_ASSIGN_OR_RETURN(const nats::StreamState state,
                          jetstream_->GetStream(AsideStreamOf(queue)));
  return static_cast<int64_t>(state.messages) - 1;  // the metadata
}

}  // namespace muster::queue::jetstream
