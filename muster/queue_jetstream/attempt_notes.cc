#include "muster/queue_jetstream/attempt_notes.h"

#include <map>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
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
  return note.ended ? Ask(message) : Tell(message, 1);
}

absl::Status AttemptNotes::WriteTogether(const queue::QueueId& queue,
                                         absl::Span<const AttemptNote> notes) {
  std::map<uint64_t, std::vector<std::string>> pages;
  for (const AttemptNote& note : notes) pages[PageOf(note.sequence)].push_back(Encode(note));
  for (const auto& [page, lines] : pages) {
    const std::string text = absl::StrJoin(lines, "\n");
    const nats::Outgoing message{.subject = AttemptPageSubjectOf(queue, page * kPageMessages),
                                 .data = text};
    MUSTER_RETURN_IF_ERROR(Tell(message, lines.size()));
  }
  return absl::OkStatus();
}

absl::Status AttemptNotes::Tell(const nats::Outgoing& message, size_t notes) {
  nats::Connection& connection = *jetstream_->connection();
  if (!connection.prompt() || !connection.connected()) return Ask(message);
  const uint64_t told = told_.fetch_add(notes);
  const bool ask = told / kAskEvery != (told + notes) / kAskEvery;
  return ask ? Ask(message) : connection.Publish(message);
}

absl::Status AttemptNotes::Ask(const nats::Outgoing& message) {
  const absl::Status written = jetstream_->Publish(message).status();
  if (!nats::IsNobodyListens(written)) return written;
  MUSTER_RETURN_IF_ERROR(Open());
  return jetstream_->Publish(message).status();
}

absl::StatusOr<std::vector<std::optional<AttemptNote>>> AttemptNotes::Find(
    const queue::QueueId& queue, absl::Span<const uint64_t> sequences) {
  std::vector<std::optional<AttemptNote>> found;
  std::map<uint64_t, Notes> pages;
  for (const uint64_t sequence : sequences) {
    MUSTER_ASSIGN_OR_RETURN(std::optional<AttemptNote> note, FindAlone(queue, sequence));
    if (!note.has_value()) {
      const auto [page, is_new] = pages.try_emplace(PageOf(sequence));
      if (is_new) {
        MUSTER_ASSIGN_OR_RETURN(page->second, ReadPage(queue, sequence));
      }
      for (const AttemptNote& other : page->second) {
        if (other.sequence == sequence) note = other;
      }
    }
    found.push_back(note);
  }
  return found;
}

absl::StatusOr<std::optional<AttemptNote>> AttemptNotes::FindAlone(const queue::QueueId& queue,
                                                                   uint64_t sequence) {
  const auto message = jetstream_->LastMessage(kAttemptsStream, AttemptSubjectOf(queue, sequence));
  if (absl::IsNotFound(message.status())) return std::nullopt;
  MUSTER_RETURN_IF_ERROR(message.status());
  std::optional<AttemptNote> note = DecodeAttemptNote(message->data);
  if (note.has_value() && note->sequence != sequence) note.reset();  // another one's slot by now
  return note;
}

absl::StatusOr<AttemptNotes::Notes> AttemptNotes::ReadPage(const queue::QueueId& queue,
                                                           uint64_t sequence) {
  const std::string subject = AttemptPageSubjectOf(queue, sequence);
  Notes notes;
  for (uint64_t from = 1;;) {
    const auto message = jetstream_->NextMessage(kAttemptsStream, from, subject);
    if (absl::IsNotFound(message.status())) return notes;
    MUSTER_RETURN_IF_ERROR(message.status());
    for (const absl::string_view line : absl::StrSplit(message->data, '\n')) {
      if (const std::optional<AttemptNote> note = DecodeAttemptNote(line)) notes.push_back(*note);
    }
    from = message->sequence + 1;
  }
}

absl::Status AttemptNotes::Forget(const queue::QueueId& queue) {
  const absl::Status purged = jetstream_->Purge(kAttemptsStream, AttemptSubjectsOf(queue)).status();
  return absl::IsNotFound(purged) ? absl::OkStatus() : purged;
}

}  // namespace muster::queue_jetstream
