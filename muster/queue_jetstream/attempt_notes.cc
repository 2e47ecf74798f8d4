#include "muster/queue_jetstream/attempt_notes.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/status_macros.h"
#include "muster/nats/status.h"
#include "muster/queue_jetstream/names.h"
#include "muster/queue_jetstream/settings.h"
#include "nlohmann/json.hpp"

namespace muster::queue_jetstream {
namespace {

// So many notes at most are lost on a stream that is gone.
constexpr uint64_t kAskEvery = 64;

}  // namespace

std::string Encode(const AttemptNote& note) {
  return absl::StrCat(note.sequence, " ", note.deliveries, " ", note.attempts, " ",
                      note.ended ? "ended" : "began", note.suspect ? " suspect" : "");
}

std::optional<AttemptNote> DecodeAttemptNote(absl::string_view text) {
  const std::vector<absl::string_view> words = absl::StrSplit(text, ' ');
  AttemptNote note;
  if (words.size() < 4 || words.size() > 5 || !absl::SimpleAtoi(words[0], &note.sequence) ||
      !absl::SimpleAtoi(words[1], &note.deliveries) ||
      !absl::SimpleAtoi(words[2], &note.attempts)) {
    return std::nullopt;
  }
  note.ended = words[3] == "ended";
  note.suspect = words.size() == 5;
  if ((!note.ended && words[3] != "began") || (note.suspect && words[4] != "suspect")) {
    return std::nullopt;
  }
  return note;
}

absl::Status AttemptNotes::Open() {
  return jetstream_->EnsureStream(AttemptsStreamSettings(settings_));
}

absl::Status AttemptNotes::Write(const queue::QueueId& queue, const AttemptNote& note) {
  const std::string text = Encode(note);
  const nats::Outgoing message{.subject = AttemptSubjectOf(queue, note.sequence), .data = text};
  nats::Connection& connection = *jetstream_->connection();
  const bool tell = !note.ended && connection.prompt() && connection.connected();
  if (tell && ++told_ % kAskEvery != 0) return connection.Publish(message);
  return Ask(message);
}

absl::Status AttemptNotes::Ask(const nats::Outgoing& message) {
  const absl::Status written = jetstream_->Publish(message).status();
  if (!nats::IsNobodyListens(written)) return written;
  MUSTER_RETURN_IF_ERROR(Open());
  return jetstream_->Publish(message).status();
}

absl::StatusOr<std::vector<std::optional<AttemptNote>>> AttemptNotes::Find(
    const queue::QueueId& queue, absl::Span<const uint64_t> sequences) {
  std::vector<std::optional<AttemptNote>> notes;
  for (const uint64_t sequence : sequences) {
    const auto message =
        jetstream_->LastMessage(kAttemptsStream, AttemptSubjectOf(queue, sequence));
    std::optional<AttemptNote>& note = notes.emplace_back();
    if (absl::IsNotFound(message.status())) continue;
    MUSTER_RETURN_IF_ERROR(message.status());
    note = DecodeAttemptNote(message->data);
    if (note.has_value() && note->sequence != sequence) note.reset();  // another one's slot by now
  }
  return notes;
}

absl::Status AttemptNotes::Forget(const queue::QueueId& queue) {
  const absl::Status purged = jetstream_->Purge(kAttemptsStream, AttemptSubjectsOf(queue)).status();
  return absl::IsNotFound(purged) ? absl::OkStatus() : purged;
}

}  // namespace muster::queue_jetstream
