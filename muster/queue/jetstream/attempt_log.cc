// SPDX-License-Identifier: Apache-2.0
#include "muster/queue/jetstream/attempt_log.h"

#include <map>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "muster/base/check.h"
#include "muster/base/status.h"
#include "muster/nats/status.h"
#include "muster/nats/stream_provisioner.h"
#include "nlohmann/json.hpp"

namespace muster::queue::jetstream {
namespace {

// At most this many records are lost on a stream that is gone.
constexpr uint64_t kAskEvery = 64;

constexpr absl::string_view kStoredPrefix = "stored:";

// The slot, or the line of a page, may be of another message by now, or from an earlier life of the
// stream.
bool IsOf(const AttemptRecord& record, const MessageKey& message) {
  return record.sequence == message.sequence &&
         (record.stored_ns == 0 || record.stored_ns == message.stored_ns);
}

// The record of `message` in a note of its own; nullopt: it is of another one.
std::optional<AttemptRecord> RecordIn(const nats::StoredMessage& note, const MessageKey& message) {
  std::optional<AttemptRecord> record = DecodeAttemptRecord(note.data);
  if (!record.has_value() || !IsOf(*record, message)) return std::nullopt;
  for (const nats::Header& header : note.headers) {
    if (header.name == kDelayHeader) DecodeDelay(header.value, &*record);
  }
  return record;
}

}  // namespace

std::string Encode(const AttemptRecord& record) {
  return absl::StrCat(
      record.sequence, " ", record.deliveries, " ", record.attempts, " ",
      record.ended ? "ended" : "began", record.suspect ? " suspect" : "",
      record.stored_ns == 0 ? "" : absl::StrCat(" ", kStoredPrefix, absl::Hex(record.stored_ns)));
}

std::optional<AttemptRecord> DecodeAttemptRecord(absl::string_view text) {
  std::vector<absl::string_view> words = absl::StrSplit(text, ' ');
  AttemptRecord record;
  if (absl::ConsumePrefix(&words.back(), kStoredPrefix)) {
    if (!absl::SimpleHexAtoi(words.back(), &record.stored_ns)) return std::nullopt;
    words.pop_back();
  }
  if (words.size() < 4 || words.size() > 5 || !absl::SimpleAtoi(words[0], &record.sequence) ||
      !absl::SimpleAtoi(words[1], &record.deliveries) ||
      !absl::SimpleAtoi(words[2], &record.attempts)) {
    return std::nullopt;
  }
  record.ended = words[3] == "ended";
  record.suspect = words.size() == 5;
  if ((!record.ended && words[3] != "began") || (record.suspect && words[4] != "suspect")) {
    return std::nullopt;
  }
  return record;
}

std::string EncodeDelay(const AttemptRecord& record) {
  return absl::StrCat(record.due_ns, " ", record.lease_ns);
}

void DecodeDelay(absl::string_view text, AttemptRecord* record) {
  const std::vector<absl::string_view> words = absl::StrSplit(text, ' ');
  int64_t due_ns = 0, lease_ns = 0;
  if (words.size() != 2 || !absl::SimpleAtoi(words[0], &due_ns) ||
      !absl::SimpleAtoi(words[1], &lease_ns)) {
    return;
  }
  record->due_ns = due_ns;
  record->lease_ns = lease_ns;
}

absl::Status AttemptLog::Open() {
  return jetstream_->EnsureStream(AttemptsStreamSettings(settings_));
}

absl::Status AttemptLog::Write(const queue::QueueId& queue, const AttemptRecord& record) {
  MUSTER_CHECK(record.ended || !record.suspect, Encode(record));
  const std::string text = Encode(record);
  nats::Outgoing message{.subject = AttemptSubjectOf(queue, record.sequence), .data = text};
  if (record.due_ns != 0) message.headers = {{kDelayHeader, EncodeDelay(record)}};
  return record.ended ? Ask(message) : Tell(message, 1);
}

absl::Status AttemptLog::WriteTogether(const queue::QueueId& queue,
                                       absl::Span<const AttemptRecord> records) {
  std::map<uint64_t, std::vector<std::string>> pages;
  for (const AttemptRecord& record : records) {
    MUSTER_CHECK(record.deliveries == 1 && record.attempts == 0 && !record.ended, Encode(record));
    pages[PageOf(record.sequence)].push_back(Encode(record));
  }
  for (const auto& [page, lines] : pages) {
    const std::string text = absl::StrJoin(lines, "\n");
    const nats::Outgoing message{.subject = AttemptPageSubjectOf(queue, page * kPageMessages),
                                 .data = text};
    MUSTER_RETURN_IF_ERROR(Tell(message, lines.size()));
  }
  return absl::OkStatus();
}

absl::Status AttemptLog::Tell(const nats::Outgoing& message, size_t records) {
  nats::Connection& connection = *jetstream_->connection();
  if (!connection.prompt() || !connection.connected()) return Ask(message);
  const uint64_t told = told_.fetch_add(records);
  const bool ask = told / kAskEvery != (told + records) / kAskEvery;
  return ask ? Ask(message) : connection.Publish(message);
}

absl::Status AttemptLog::Ask(const nats::Outgoing& message) {
  const absl::Status written = jetstream_->Publish(message).status();
  if (!nats::IsNobodyListens(written)) return written;
  // The stream is gone, lost with the memory of the server: make it again, then write once it
  // listens.
  MUSTER_RETURN_IF_ERROR(Open());
  return nats::WriteOnceHeard([&] { return jetstream_->Publish(message).status(); });
}

absl::StatusOr<std::vector<std::optional<AttemptRecord>>> AttemptLog::Find(
    const queue::QueueId& queue, absl::Span<const MessageKey> messages) {
  std::vector<std::optional<AttemptRecord>> found;
  if (messages.empty()) return found;
  std::vector<std::string> subjects;
  for (const MessageKey& message : messages) {
    subjects.push_back(AttemptSubjectOf(queue, message.sequence));
  }
  MUSTER_ASSIGN_OR_RETURN(const auto notes, jetstream_->LastMessages(kAttemptsStream, subjects));
  MUSTER_CHECK(notes.size() == messages.size(), "notes ", notes.size(), ", messages ",
               messages.size());
  std::map<uint64_t, Notes> pages;
  for (size_t i = 0; i < messages.size(); ++i) {
    const MessageKey& message = messages[i];
    std::optional<AttemptRecord> record;
    if (notes[i].has_value()) record = RecordIn(*notes[i], message);
    if (!record.has_value()) {
      const auto [page, is_new] = pages.try_emplace(PageOf(message.sequence));
      if (is_new) {
        MUSTER_ASSIGN_OR_RETURN(page->second, ReadPage(queue, message.sequence));
      }
      for (const AttemptRecord& other : page->second) {
        if (IsOf(other, message)) record = other;
      }
    }
    found.push_back(record);
  }
  return found;
}

absl::StatusOr<AttemptLog::Notes> AttemptLog::ReadPage(const queue::QueueId& queue,
                                                       uint64_t sequence) {
  const std::string subject = AttemptPageSubjectOf(queue, sequence);
  Notes records;
  for (uint64_t from = 1;;) {
    const auto message = jetstream_->NextMessage(kAttemptsStream, from, subject);
    if (absl::IsNotFound(message.status())) return records;
    MUSTER_RETURN_IF_ERROR(message.status());
    for (const absl::string_view line : absl::StrSplit(message->data, '\n')) {
      if (const std::optional<AttemptRecord> record = DecodeAttemptRecord(line))
        records.push_back(*record);
    }
    from = message->sequence + 1;
  }
}

absl::Status AttemptLog::Forget(const queue::QueueId& queue) {
  const absl::Status purged = jetstream_->Purge(kAttemptsStream, AttemptSubjectsOf(queue)).status();
  return absl::IsNotFound(purged) ? absl::OkStatus() : purged;
}

}  // namespace muster::queue::jetstream
