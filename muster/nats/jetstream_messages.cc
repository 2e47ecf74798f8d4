// SPDX-License-Identifier: Apache-2.0

// JetStream: the messages of streams.

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "muster/base/check.h"
#include "muster/base/clock.h"
#include "muster/base/status.h"
#include "muster/nats/api_answer.h"
#include "muster/nats/jetstream.h"
#include "nlohmann/json.hpp"

namespace muster::nats {

namespace {

using nlohmann::json;

// Of a message that is to be deleted (its errors.json).
constexpr int kSequenceNotFound = 10043;
constexpr int kMessageNotDeleted = 10057;

// Between two tries of a message; doubled each time.
constexpr absl::Duration kFirstWait = absl::Milliseconds(1);

std::vector<Header> HeadersOf(absl::string_view text) {
  std::vector<Header> headers;
  for (absl::string_view line : absl::StrSplit(text, "\r\n", absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(':', 1));
    if (line.find(':') == absl::string_view::npos) continue;  // the version
    headers.push_back(
        {std::string(parts.first), std::string(absl::StripAsciiWhitespace(parts.second))});
  }
  return headers;
}

// The message in the answer to a STREAM.MSG.GET.
absl::StatusOr<StoredMessage> MessageIn(const json& answer, const std::string& stream) {
  const json from = Part(answer, "message");
  StoredMessage message;
  message.subject = Text(from, "subject");
  message.sequence = Field(from, "seq", uint64_t{0});
  message.time = TimeOf(from, "time");
  std::string headers;
  if (!absl::Base64Unescape(Text(from, "hdrs"), &headers) ||
      !absl::Base64Unescape(Text(from, "data"), &message.data)) {
    return absl::DataLossError(
        absl::StrCat("message ", message.sequence, " of stream ", stream, " is not base64"));
  }
  message.headers = HeadersOf(headers);
  return message;
}

}  // namespace

absl::StatusOr<std::vector<absl::StatusOr<PubAck>>> JetStream::Publish(
    absl::Span<const Outgoing> messages) {
  MUSTER_ASSIGN_OR_RETURN(const auto answers, connection_->RequestAll(messages, timeout_));
  std::vector<absl::StatusOr<PubAck>> acks;
  acks.reserve(answers.size());
  for (size_t i = 0; i < answers.size(); ++i) {
    if (!answers[i].ok()) {
      acks.push_back(answers[i].status());
      continue;
    }
    const absl::StatusOr<json> answer =
        ParseAnswer(answers[i]->data, absl::StrCat("publishing to ", messages[i].subject));
    if (!answer.ok()) {
      acks.push_back(answer.status());
      continue;
    }
    const PubAck ack{Field(*answer, "seq", uint64_t{0}), Field(*answer, "duplicate", false)};
    if (ack.sequence == 0) {
      acks.push_back(absl::InternalError(absl::StrCat("publishing to ", messages[i].subject,
                                                      ": the answer is not from a stream")));
      continue;
    }
    acks.push_back(ack);
  }
  return acks;
}

absl::StatusOr<std::vector<PubAck>> JetStream::PublishAtomically(
    absl::Span<const Outgoing> messages) {
  MUSTER_CHECK(!messages.empty() && messages.size() <= kMaxAtomicMessages, "messages ",
               messages.size());
  const std::string batch = absl::StrCat(batch_ids_, ".", absl::Hex(++batches_));
  const auto in_batch = [&](size_t i) {
    Outgoing message = messages[i];
    message.headers.push_back({"Nats-Batch-Id", batch});
    message.headers.push_back({"Nats-Batch-Sequence", absl::StrCat(i + 1)});
    return message;
  };
  const size_t last = messages.size() - 1;
  for (size_t i = 0; i < last; ++i) {
    MUSTER_RETURN_IF_ERROR(connection_->Publish(in_batch(i)));
  }
  Outgoing commit = in_batch(last);
  commit.headers.push_back({"Nats-Batch-Commit", "1"});
  MUSTER_ASSIGN_OR_RETURN(const Incoming reply, connection_->Request(commit, timeout_));
  MUSTER_ASSIGN_OR_RETURN(
      const json answer,
      ParseAnswer(reply.data, absl::StrCat("publishing a batch to ", commit.subject)));
  const auto sequence = Field(answer, "seq", uint64_t{0});
  if (Text(answer, "batch") != batch || sequence < messages.size()) {
    return absl::UnavailableError(
        absl::StrCat("publishing a batch to ", commit.subject,
                     ": the server has taken its messages one by one, or is none of a stream"));
  }
  std::vector<PubAck> acks(messages.size());
  for (size_t i = 0; i < acks.size(); ++i) acks[i].sequence = sequence - (last - i);
  return acks;
}

// The leader of a replicated stream refuses an expectation while another message of the subject is
// on its way to the replicas: a caller that reads again now finds what it knows already.
absl::StatusOr<PubAck> JetStream::Publish(const Outgoing& message) {
  for (absl::Duration wait = kFirstWait;; wait *= 2) {
    MUSTER_ASSIGN_OR_RETURN(const auto acks, Publish(absl::MakeConstSpan(&message, 1)));
    if (ErrorCodeOf(acks.front().status()) != kLastSequenceUndecided || wait > timeout_ / 4) {
      return acks.front();
    }
    base::SleepUnlessStopped(base::RealClock(), wait, {});
  }
}

absl::StatusOr<StoredMessage> JetStream::GetMessage(const std::string& stream, uint64_t sequence) {
  return Get(stream, {{"seq", sequence}});
}

absl::StatusOr<StoredMessage> JetStream::NextMessage(const std::string& stream, uint64_t sequence,
                                                     const std::string& subjects) {
  return Get(stream, {{"seq", sequence}, {"next_by_subj", subjects}});
}

absl::StatusOr<StoredMessage> JetStream::LastMessage(const std::string& stream,
                                                     const std::string& subject) {
  return Get(stream, {{"last_by_subj", subject}});
}

absl::StatusOr<std::vector<std::optional<StoredMessage>>> JetStream::LastMessages(
    const std::string& stream, absl::Span<const std::string> subjects) {
  const std::string endpoint = absl::StrCat("STREAM.MSG.GET.", stream);
  const std::string to = absl::StrCat("$JS.API.", endpoint);
  std::vector<std::string> texts;
  for (const std::string& subject : subjects) {
    texts.push_back(json{{"last_by_subj", subject}}.dump());
  }
  std::vector<Outgoing> requests;
  for (const std::string& text : texts) requests.push_back({.subject = to, .data = text});
  MUSTER_ASSIGN_OR_RETURN(const auto answers, connection_->RequestAll(requests, timeout_));
  std::vector<std::optional<StoredMessage>> messages;
  for (const absl::StatusOr<Incoming>& reply : answers) {
    MUSTER_RETURN_IF_ERROR(reply.status());
    const absl::StatusOr<json> answer = ParseAnswer(reply->data, endpoint);
    messages.emplace_back();
    if (absl::IsNotFound(answer.status())) continue;
    MUSTER_RETURN_IF_ERROR(answer.status());
    MUSTER_ASSIGN_OR_RETURN(messages.back(), MessageIn(*answer, stream));
  }
  return messages;
}

absl::StatusOr<StoredMessage> JetStream::Get(const std::string& stream, const json& request) {
  MUSTER_ASSIGN_OR_RETURN(const json answer,
                          Call(absl::StrCat("STREAM.MSG.GET.", stream), request));
  return MessageIn(answer, stream);
}

absl::StatusOr<std::vector<StoredMessage>> JetStream::NextMessages(const std::string& stream,
                                                                   uint64_t sequence,
                                                                   uint64_t window,
                                                                   const std::string& subjects) {
  const std::string endpoint = absl::StrCat("STREAM.MSG.GET.", stream);
  json wish = {{"seq", sequence}, {"next_by_subj", subjects}};
  std::vector<std::string> texts = {wish.dump()};
  wish.erase("next_by_subj");
  for (uint64_t i = 1; i < window; ++i) {
    wish["seq"] = sequence + i;
    texts.push_back(wish.dump());
  }
  std::vector<Outgoing> requests;
  for (const std::string& text : texts) {
    requests.push_back({.subject = absl::StrCat("$JS.API.", endpoint), .data = text});
  }
  MUSTER_ASSIGN_OR_RETURN(const auto answers, connection_->RequestAll(requests, timeout_));
  std::vector<StoredMessage> messages;
  for (const absl::StatusOr<Incoming>& reply : answers) {
    MUSTER_RETURN_IF_ERROR(reply.status());
    const absl::StatusOr<json> answer = ParseAnswer(reply->data, endpoint);
    if (ErrorCodeOf(answer.status()) == kNoMessageFound) {
      if (messages.empty()) break;  // the first answer, which is about all that follow
      continue;
    }
    MUSTER_RETURN_IF_ERROR(answer.status());
    MUSTER_ASSIGN_OR_RETURN(StoredMessage message, MessageIn(*answer, stream));
    if (!messages.empty() && message.sequence <= messages.back().sequence) continue;
    messages.push_back(std::move(message));
  }
  return messages;
}

absl::Status JetStream::DeleteMessage(const std::string& stream, uint64_t sequence) {
  const absl::Status status =
      Call(absl::StrCat("STREAM.MSG.DELETE.", stream), {{"seq", sequence}}).status();
  const int code = ErrorCodeOf(status);
  if (code != kSequenceNotFound && code != kMessageNotDeleted) return status;
  // The server says the one of a message that was between others, and the other of any that is not
  // there and of a store that failed.
  const absl::Status there = GetMessage(stream, sequence).status();
  return absl::IsNotFound(there) ? there : status;
}

absl::StatusOr<int64_t> JetStream::Purge(const std::string& stream, const std::string& subjects,
                                         std::optional<uint64_t> last) {
  json request = json::object();
  if (!subjects.empty()) request["filter"] = subjects;
  if (last.has_value()) request["seq"] = *last + 1;  // the first that stays
  MUSTER_ASSIGN_OR_RETURN(const json answer, Call(absl::StrCat("STREAM.PURGE.", stream), request));
  return Field(answer, "purged", int64_t{0});
}

}  // namespace muster::nats
