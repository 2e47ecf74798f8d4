// SPDX-License-Identifier: Apache-2.0
#include "muster/queue/jetstream/dead_letter_store.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
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

// In an id, the bits above those of the place in the stream: a mark of when the message came there.
// A stream that was lost and is made anew gives the places again, and an id from before then names
// no other message, nearly always. No mark is 0, so the id of a message in the queue is none here.
constexpr int kSequenceBits = 48;
constexpr uint64_t kMaxSequence = (uint64_t{1} << kSequenceBits) - 1;
constexpr uint64_t kMaxMark = 0xfff;

std::string IdOf(const queue::QueueId& queue, const nats::StoredMessage& stored) {
  const uint64_t mark = 1 + static_cast<uint64_t>(absl::ToUnixMicros(stored.time)) % kMaxMark;
  return MessageIdOf(queue, stored.sequence | mark << kSequenceBits);
}

// The place of the message with this id; nullopt: it is no id of a poison message of the queue.
std::optional<uint64_t> PlaceOf(const queue::QueueId& queue, absl::string_view id) {
  const std::optional<uint64_t> number = SequenceOf(queue, id);
  if (!number.has_value() || *number <= kMaxSequence) return std::nullopt;
  return *number & kMaxSequence;
}

// The key of what lies in the second stream of the queue; nullopt: it is no poison message.
std::optional<MessageKey> KeyIn(const queue::QueueId& queue, const nats::StoredMessage& stored) {
  const std::optional<MessageKey> key = PoisonKeyOf(stored.subject);
  if (!key.has_value() || stored.subject != PoisonSubjectOf(queue, *key)) return std::nullopt;
  return key;
}

// Messages that are asked for together: bodies of up to a mebibyte each may be on their way.
constexpr size_t kMaxStep = 32;

// Reads the poison messages of a queue from a place on, up to the last that is there when it
// begins: the answers of a step are of different moments, and of what is added meanwhile some would
// be missed (StreamQueue::Scan).
class PoisonReader {
 public:
  // `jetstream` is not owned.
  static absl::StatusOr<PoisonReader> Open(nats::JetStream* jetstream, const queue::QueueId& queue,
                                           uint64_t from) {
    MUSTER_ASSIGN_OR_RETURN(const nats::StreamState state,
                            jetstream->GetStream(AsideStreamOf(queue)));
    return PoisonReader(jetstream, queue, from, state.last_sequence);
  }

  // Returns the next messages, at most `most`, which is at least 1. None: there are no more.
  absl::StatusOr<std::vector<nats::StoredMessage>> Next(size_t most) {
    std::vector<nats::StoredMessage> step;
    while (step.empty() && from_ <= last_) {
      MUSTER_ASSIGN_OR_RETURN(
          step, jetstream_->NextMessages(AsideStreamOf(queue_), from_, std::min(step_, most),
                                         PoisonSubjectsOf(queue_)));
      from_ = step.empty() ? last_ + 1 : step.back().sequence + 1;
      std::erase_if(step, [this](const nats::StoredMessage& stored) {
        return stored.sequence > last_ || !KeyIn(queue_, stored).has_value();
      });
      // Where most are gone, a request for each place would cost more than one after the other.
      step_ = std::clamp<size_t>(2 * step.size(), 1, kMaxStep);
    }
    return step;
  }

 private:
  PoisonReader(nats::JetStream* jetstream, queue::QueueId queue, uint64_t from, uint64_t last)
      : jetstream_(jetstream), queue_(std::move(queue)), from_(from), last_(last) {}

  nats::JetStream* jetstream_;  // not owned
  queue::QueueId queue_;
  uint64_t from_;
  uint64_t last_;
  size_t step_ = kMaxStep;
};

queue::PoisonMessage Show(const queue::QueueId& queue, nats::StoredMessage stored) {
  queue::PoisonMessage message;
  message.message_id = IdOf(queue, stored);
  message.body = std::move(stored.data);
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

absl::StatusOr<std::vector<queue::PoisonMessage>> DeadLetterStore::List(const queue::QueueId& queue,
                                                                        absl::string_view after,
                                                                        int max_messages) {
  const std::optional<uint64_t> place = after.empty() ? 0 : PlaceOf(queue, after);
  if (!place.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", after, "' is no poison message of queue '", queue.ToString(), "'"));
  }
  MUSTER_ASSIGN_OR_RETURN(PoisonReader reader, PoisonReader::Open(jetstream_, queue, *place + 1));
  const auto most = static_cast<size_t>(max_messages);
  std::vector<queue::PoisonMessage> page;
  size_t bytes = 0;
  while (page.size() < most && bytes < queue::kMaxPutBytes) {
    MUSTER_ASSIGN_OR_RETURN(std::vector<nats::StoredMessage> step, reader.Next(most - page.size()));
    if (step.empty()) break;
    for (nats::StoredMessage& stored : step) {
      bytes += stored.data.size();
      page.push_back(Show(queue, std::move(stored)));
    }
  }
  return page;
}

absl::StatusOr<std::optional<nats::StoredMessage>> DeadLetterStore::Find(
    const queue::QueueId& queue, absl::string_view id) {
  const std::optional<uint64_t> place = PlaceOf(queue, id);
  if (!place.has_value()) return std::nullopt;
  absl::StatusOr<nats::StoredMessage> stored = jetstream_->GetMessage(AsideStreamOf(queue), *place);
  if (absl::IsNotFound(stored.status())) return std::nullopt;
  MUSTER_RETURN_IF_ERROR(stored.status());
  if (!KeyIn(queue, *stored).has_value() || IdOf(queue, *stored) != id) return std::nullopt;
  return *std::move(stored);
}

absl::StatusOr<std::optional<nats::StoredMessage>> DeadLetterStore::FindReceived(
    const queue::QueueId& queue, const MessageKey& key) {
  absl::StatusOr<nats::StoredMessage> stored =
      jetstream_->LastMessage(AsideStreamOf(queue), PoisonSubjectOf(queue, key));
  if (absl::IsNotFound(stored.status())) return std::nullopt;
  MUSTER_RETURN_IF_ERROR(stored.status());
  return *std::move(stored);
}

absl::StatusOr<std::vector<std::optional<queue::PoisonMessage>>> DeadLetterStore::FindAll(
    const queue::QueueId& queue, absl::Span<const queue::PoisonName> names) {
  std::vector<std::optional<queue::PoisonMessage>> all;
  for (const queue::PoisonName& name : names) {
    MUSTER_ASSIGN_OR_RETURN(std::optional<nats::StoredMessage> stored,
                            name.message_id.empty()
                                ? FindReceived(queue, KeyOf(name.position, name.insertion_time))
                                : Find(queue, name.message_id));
    all.emplace_back();
    if (stored.has_value()) all.back() = Show(queue, *std::move(stored));
  }
  return all;
}

absl::StatusOr<int64_t> DeadLetterStore::Redrive(const queue::QueueId& queue,
                                                 absl::Span<const std::string> ids,
                                                 int64_t max_messages) {
  if (ids.empty()) return RedriveOldest(queue, max_messages);
  std::vector<std::string> oldest_first(ids.begin(), ids.end());
  std::sort(oldest_first.begin(), oldest_first.end(),
            [&](const std::string& a, const std::string& b) {
              return PlaceOf(queue, a) < PlaceOf(queue, b);
            });
  int64_t redriven = 0;
  for (const std::string& id : oldest_first) {
    const auto stored = Find(queue, id);
    if (!stored.ok()) return Redriven(redriven, stored.status());
    if (!stored->has_value()) continue;
    const absl::StatusOr<int64_t> one = RedriveOne(queue, **stored);
    if (!one.ok()) return Redriven(redriven, one.status());
    redriven += *one;
  }
  return redriven;
}

absl::StatusOr<int64_t> DeadLetterStore::RedriveOldest(const queue::QueueId& queue,
                                                       int64_t max_messages) {
  MUSTER_ASSIGN_OR_RETURN(PoisonReader reader, PoisonReader::Open(jetstream_, queue, 1));
  int64_t redriven = 0;
  while (redriven < max_messages) {
    const auto step = reader.Next(static_cast<size_t>(max_messages - redriven));
    if (!step.ok()) return Redriven(redriven, step.status());
    if (step->empty()) break;
    for (const nats::StoredMessage& stored : *step) {
      const absl::StatusOr<int64_t> one = RedriveOne(queue, stored);
      if (!one.ok()) return Redriven(redriven, one.status());
      redriven += *one;
    }
  }
  return redriven;
}

absl::StatusOr<int64_t> DeadLetterStore::RedriveOne(const queue::QueueId& queue,
                                                    const nats::StoredMessage& stored) {
  // Put, then delete. After a crash between the two steps the next redrive does both again; the
  // message id makes the second put a duplicate, unless the first copy is gone and its id is
  // forgotten: then it is worked on twice, and counted once.
  const std::optional<MessageKey> key = KeyIn(queue, stored);
  MUSTER_CHECK(key.has_value(), "subject ", stored.subject);
  const nats::Outgoing copy{
      .subject = SubjectOf(queue),
      .headers = {{"Nats-Msg-Id",
                   absl::StrCat("muster.redrive.", key->sequence, ".", stored.sequence)}},
      .data = stored.data};
  MUSTER_RETURN_IF_ERROR(jetstream_->Publish(copy).status());
  const absl::Status deleted = jetstream_->DeleteMessage(AsideStreamOf(queue), stored.sequence);
  if (absl::IsNotFound(deleted)) return 0;
  MUSTER_RETURN_IF_ERROR(deleted);
  return 1;
}

absl::StatusOr<int64_t> DeadLetterStore::Purge(const queue::QueueId& queue) {
  MUSTER_ASSIGN_OR_RETURN(const nats::StreamState state,
                          jetstream_->GetStream(AsideStreamOf(queue)));
  int64_t purged = 0;
  uint64_t last = state.first_sequence;
  do {
    last = std::min(last + purge_step_, state.last_sequence);
    MUSTER_ASSIGN_OR_RETURN(const int64_t some,
                            jetstream_->Purge(AsideStreamOf(queue), PoisonSubjectsOf(queue), last));
    purged += some;
  } while (last < state.last_sequence);
  return purged;
}

absl::StatusOr<int64_t> DeadLetterStore::Drop(const queue::QueueId& queue,
                                              absl::Span<const std::string> ids) {
  int64_t dropped = 0;
  for (const std::string& id : ids) {
    MUSTER_ASSIGN_OR_RETURN(const auto stored, Find(queue, id));
    if (!stored.has_value()) continue;
    const absl::Status deleted = jetstream_->DeleteMessage(AsideStreamOf(queue), stored->sequence);
    if (absl::IsNotFound(deleted)) continue;
    MUSTER_RETURN_IF_ERROR(deleted);
    ++dropped;
  }
  return dropped;
}

absl::StatusOr<int64_t> DeadLetterStore::Count(const queue::QueueId& queue) {
  MUSTER_ASSIGN_OR_RETURN(const nats::StreamState state,
                          jetstream_->GetStream(AsideStreamOf(queue)));
  return static_cast<int64_t>(state.messages) - 1;  // the metadata
}

}  // namespace muster::queue::jetstream
