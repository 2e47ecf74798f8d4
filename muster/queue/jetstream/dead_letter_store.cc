#include "muster/queue/jetstream/dead_letter_store.h"

#include <algorithm>

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

queue::PoisonMessage Show(const queue::QueueId& queue, uint64_t sequence,
                          const nats::StoredMessage& stored) {
  queue::PoisonMessage message;
  message.message_id = MessageIdOf(queue, sequence);
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
      ->Publish({.subject = PoisonSubjectOf(queue, absl::StrCat(message.sequence)),
                 .headers = {{kCauseHeader, EncodeCause(cause, message.time)}},
                 .data = message.data})
      .status();
}

absl::StatusOr<std::vector<uint64_t>> DeadLetterStore::Sequences(const queue::QueueId& queue) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> subjects,
                          jetstream_->Subjects(AsideStreamOf(queue), PoisonSubjectOf(queue, "*")));
  std::vector<uint64_t> sequences;
  for (const std::string& subject : subjects) {
    uint64_t sequence = 0;
    if (absl::SimpleAtoi(subject.substr(subject.rfind('.') + 1), &sequence)) {
      sequences.push_back(sequence);
    }
  }
  std::sort(sequences.begin(), sequences.end());
  return sequences;
}

absl::StatusOr<std::vector<queue::PoisonMessage>> DeadLetterStore::List(const queue::QueueId& queue,
                                                                        uint64_t after,
                                                                        int max_messages) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<uint64_t> all, Sequences(queue));
  std::vector<queue::PoisonMessage> page;
  for (auto sequence = std::upper_bound(all.begin(), all.end(), after);
       sequence != all.end() && page.size() < static_cast<size_t>(max_messages); ++sequence) {
    const auto stored = jetstream_->LastMessage(AsideStreamOf(queue),
                                                PoisonSubjectOf(queue, absl::StrCat(*sequence)));
    if (absl::IsNotFound(stored.status())) continue;  // redriven meanwhile
    MUSTER_RETURN_IF_ERROR(stored.status());
    page.push_back(Show(queue, *sequence, *stored));
  }
  return page;
}

absl::StatusOr<int64_t> DeadLetterStore::Redrive(const queue::QueueId& queue,
                                                 absl::Span<const uint64_t> sequences) {
  int64_t redriven = 0;
  for (const uint64_t sequence : sequences) {
    const auto stored = jetstream_->LastMessage(AsideStreamOf(queue),
                                                PoisonSubjectOf(queue, absl::StrCat(sequence)));
    if (absl::IsNotFound(stored.status())) continue;
    if (!stored.ok()) return Redriven(redriven, stored.status());
    // Put, then delete. After a crash between the two steps the next redrive does both again; the
    // message id makes the second put a duplicate.
    const nats::Outgoing copy{.subject = SubjectOf(queue),
                              .headers = {{"Nats-Msg-Id", absl::StrCat("muster.redrive.", sequence,
                                                                       ".", stored->sequence)}},
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
  return jetstream_->Purge(AsideStreamOf(queue), PoisonSubjectOf(queue, "*"));
}

absl::StatusOr<int64_t> DeadLetterStore::Count(const queue::QueueId& queue) {
  MUSTER_ASSIGN_OR_RETURN(const nats::StreamState state,
                          jetstream_->GetStream(AsideStreamOf(queue)));
  return static_cast<int64_t>(state.messages) - 1;  // the metadata
}

}  // namespace muster::queue::jetstream
