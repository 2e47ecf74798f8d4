// SPDX-License-Identifier: Apache-2.0
#include "muster/nats/jetstream.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "muster/base/check.h"
#include "muster/base/clock.h"
#include "muster/base/random.h"
#include "muster/base/status.h"
#include "muster/nats/status.h"
#include "nlohmann/json.hpp"

namespace muster::nats {

namespace {

using nlohmann::json;

// Settings that a server never changes later. They are reported first, because other differences
// may follow from them.
bool IsForGood(const Difference& difference) {
  return difference.field == "storage" || difference.field == "retention";
}

}  // namespace

std::vector<Difference> DifferencesOf(const json& wanted, const json& got,
                                      absl::Span<const absl::string_view> optional) {
  std::vector<Difference> differences;
  for (const auto& [field, value] : wanted.items()) {
    if (std::find(optional.begin(), optional.end(), field) != optional.end()) continue;
    const auto found = got.find(field);
    if (found != got.end() && *found == value) continue;
    differences.push_back({field, found == got.end() ? "not set" : found->dump(), value.dump()});
  }
  std::stable_partition(differences.begin(), differences.end(), IsForGood);
  return differences;
}

std::string Describe(absl::Span<const Difference> differences) {
  std::string text;
  for (const Difference& difference : differences) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", difference.field, " is ", difference.is,
                    ", not ", difference.wanted);
  }
  return text;
}

absl::Status Incompatible(absl::string_view name, absl::string_view message,
                          absl::Span<const Difference> differences) {
  base::Mismatch mismatch;
  mismatch.what = std::string(name);
  if (!differences.empty()) {
    mismatch.field = differences.front().field;
    mismatch.is = differences.front().is;
    mismatch.wanted = differences.front().wanted;
  }
  return base::WithMismatch(absl::FailedPreconditionError(message), mismatch);
}

namespace {

using nlohmann::json;

constexpr absl::string_view kErrorCodeUrl = "muster/nats-error-code";

// Error codes of the server that do not follow from their HTTP codes.
constexpr int kNotEnabledForAccount = 10039;
constexpr int kStreamNameInUse = 10058;
constexpr int kNoSuitablePeers = 10005;
constexpr int kConsumerNameInUse = 10013;
constexpr int kConsumerExists = 10148;
constexpr int kInsufficientResources = 10023;
constexpr int kStoreFailed = 10077;  // a limit of the stream, a full disk

// With which a server refuses an atomic batch that it may take as single messages. "Incomplete" is
// also its word after a lost message, and for a first message that it has refused silently.
constexpr int kAtomicRefusals[] = {
    10158,  // a message with the id of another is on its way
    kAtomicNotAllowed,
    10176,  // incomplete
    10199,  // too large
    10201,  // a message with the id of another one is there
    10210,  // too many of them are on their way
};

// Of a message that is to be deleted (its errors.json).
constexpr int kSequenceNotFound = 10043;
constexpr int kMessageNotDeleted = 10057;

// Between attempts to make a stream that another client makes at the same moment.
constexpr absl::Duration kFirstRaceWait = absl::Milliseconds(2);
constexpr absl::Duration kLastRaceWait = absl::Seconds(1);

absl::StatusCode CodeOf(int http_code, int error_code) {
  switch (error_code) {
    case kStreamNameInUse:
    case kConsumerNameInUse:
    case kConsumerExists:
      return absl::StatusCode::kAlreadyExists;
    case kWrongLastSequence:
      return absl::StatusCode::kFailedPrecondition;
    case kNoSuitablePeers:
      // Of the servers of the cluster too few are there, or have room: one that forms has a leader
      // before it has all of its servers.
      return absl::StatusCode::kUnavailable;
    case kInsufficientResources:
    case kStoreFailed:
      return absl::StatusCode::kResourceExhausted;
    default:
      break;
  }
  switch (http_code) {
    case 404:
      return absl::StatusCode::kNotFound;
    case 503:
      return absl::StatusCode::kUnavailable;
    case 500:
      // The server answers with this when storage is full, or a limit of the account is reached.
      return absl::StatusCode::kResourceExhausted;
    default:
      return absl::StatusCode::kInternal;
  }
}

// Returns `field`, or `otherwise` if it is missing or of another type: an answer to a request is
// untrusted input.
template <typename T>
T Field(const json& object, const char* field, T otherwise) {
  const auto found = object.find(field);
  if (found == object.end()) return otherwise;
  try {
    return found->get<T>();
  } catch (const json::exception&) {
    return otherwise;
  }
}
std::string Text(const json& object, const char* field) {
  return Field(object, field, std::string());
}
// Returns the object in `field`; an empty object if there is none.
json Part(const json& object, const char* field) {
  const auto found = object.find(field);
  return found != object.end() && found->is_object() ? *found : json::object();
}

absl::Status ErrorOf(const json& error, absl::string_view context) {
  const int http_code = Field(error, "code", 0), error_code = Field(error, "err_code", 0);
  absl::Status status(
      CodeOf(http_code, error_code),
      absl::StrCat(context, ": ", Field(error, "description", std::string("an error")),
                   " (JetStream error ", error_code, ")"));
  status.SetPayload(kErrorCodeUrl, absl::Cord(absl::StrCat(error_code)));
  return status;
}

// Parses an answer of the API; returns the error that it holds, if any. Checks its form first, so
// that no exception of the JSON library reaches the callers.
absl::StatusOr<json> ParseAnswer(absl::string_view data, absl::string_view context) {
  json answer = json::parse(data.begin(), data.end(), nullptr, /*allow_exceptions=*/false);
  if (!answer.is_object()) {
    return absl::InternalError(absl::StrCat(context, ": the answer is no JSON object"));
  }
  const auto error = answer.find("error");
  if (error != answer.end() && error->is_object()) return ErrorOf(*error, context);
  return answer;
}

absl::Time TimeOf(const json& object, const char* field) {
  absl::Time time;
  std::string error;
  if (!absl::ParseTime(absl::RFC3339_full, Text(object, field), &time, &error)) {
    return absl::InfinitePast();
  }
  return time;
}

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

// Returns the settings `is`, with those that are `wanted`.
json Merged(json is, const json& wanted) {
  is.update(wanted);
  return is;
}

absl::Status CheckAccepted(const json& wanted, const json& answer, absl::string_view what) {
  const std::vector<Difference> differences = DifferencesOf(wanted, Part(answer, "config"));
  if (differences.empty()) return absl::OkStatus();
  return Incompatible(what, absl::StrCat(what, " is not as it should be: ", Describe(differences)),
                      differences);
}

}  // namespace

int ErrorCodeOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kErrorCodeUrl);
  int code = 0;
  return payload.has_value() && absl::SimpleAtoi(std::string(*payload), &code) ? code : 0;
}

bool IsAtomicRefusal(const absl::Status& status) {
  const int code = ErrorCodeOf(status);
  return std::find(std::begin(kAtomicRefusals), std::end(kAtomicRefusals), code) !=
         std::end(kAtomicRefusals);
}

bool IsNoStream(const absl::Status& status) {
  return absl::IsNotFound(status) && ErrorCodeOf(status) != kNoMessageFound;
}

absl::StatusOr<json> JetStream::Call(const std::string& endpoint, const json& request) {
  const std::string text = request.is_null() ? "" : request.dump();
  const auto answer =
      connection_->Request({.subject = absl::StrCat("$JS.API.", endpoint), .data = text}, timeout_);
  if (!answer.ok()) return answer.status();
  return ParseAnswer(answer->data, endpoint);
}

JetStream::JetStream(Connection* connection, absl::Duration timeout)
    : connection_(connection),
      timeout_(timeout),
      batch_ids_(absl::StrCat(absl::Hex(base::RandomSeed()))) {}

absl::StatusOr<int> JetStream::ApiLevel() {
  const absl::StatusOr<json> info = Call("INFO", nullptr);
  if (info.ok()) return Field(Part(*info, "api"), "level", 0);
  if (!IsNobodyListens(info.status()) && ErrorCodeOf(info.status()) != kNotEnabledForAccount) {
    return info.status();
  }
  return absl::FailedPreconditionError("the NATS server runs no JetStream for us");
}

absl::Status JetStream::EnsureStream(const json& config) {
  absl::Duration wait = kFirstRaceWait;
  for (;;) {
    const absl::Status ensured = TryToEnsureStream(config);
    if (!absl::IsAborted(ensured) || wait > kLastRaceWait) return ensured;
    base::SleepUnlessStopped(base::RealClock(), wait, {});
    wait *= 2;
  }
}

absl::Status JetStream::TryToEnsureStream(const json& config) {
  const std::string name = Text(config, "name");
  const absl::StatusOr<json> answer = Call(absl::StrCat("STREAM.CREATE.", name), config);
  if (absl::IsAlreadyExists(answer.status())) return ChangeStream(config);
  if (ErrorCodeOf(answer.status()) == kSubjectsOverlap) return Taken(config);
  MUSTER_RETURN_IF_ERROR(answer.status());
  return CheckAccepted(config, *answer, absl::StrCat("stream ", name));
}

absl::Status JetStream::ChangeStream(const json& config) {
  const std::string name = Text(config, "name");
  const absl::StatusOr<json> is = StreamConfig(name);
  if (absl::IsNotFound(is.status())) {
    return absl::AbortedError(absl::StrCat("another client deletes ", name));
  }
  MUSTER_RETURN_IF_ERROR(is.status());
  if (const std::string origin = Text(Part(*is, "mirror"), "name"); !origin.empty()) {
    return Incompatible(name,
                        absl::StrCat("stream ", name, " is a mirror of stream ", origin,
                                     ", and takes no messages; use the server that has ", origin,
                                     ", or delete the mirror: the stream is made anew"),
                        {Difference{"mirror", absl::StrCat("of stream ", origin), "not set"}});
  }
  const std::vector<Difference> differences = DifferencesOf(config, *is);
  if (differences.empty()) return absl::OkStatus();
  const absl::StatusOr<json> answer =
      Call(absl::StrCat("STREAM.UPDATE.", name), Merged(*is, config));
  if (answer.ok()) return CheckAccepted(config, *answer, absl::StrCat("stream ", name));
  if (absl::IsUnavailable(answer.status())) return answer.status();
  return Incompatible(
      name,
      absl::StrCat(
          "stream ", name, " is there with settings that cannot be changed: ",
          Describe(differences), " (", answer.status().message(),
          "); keep what is in it, if it is of use, and delete the stream: it is made anew"),
      differences);
}

absl::Status JetStream::Taken(const json& config) {
  const std::string name = Text(config, "name");
  const json subjects = Field(config, "subjects", json::array());
  std::string others;
  for (const json& subject : subjects) {
    MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> streams,
                            StreamNames(subject.is_string() ? subject.get<std::string>() : ""));
    for (const std::string& stream : streams) {
      if (stream != name) absl::StrAppend(&others, others.empty() ? "" : ", ", stream);
    }
  }
  // With nats-server 2.9, a stream that is being made has its subjects before it has its name.
  if (others.empty()) return absl::AbortedError(absl::StrCat("another client makes ", name));
  const Difference taken{"subjects", absl::StrCat("of stream ", others), subjects.dump()};
  return Incompatible(name,
                      absl::StrCat("stream ", name, " cannot have its subjects ", subjects.dump(),
                                   ": stream ", others, " takes them; change that, or delete it"),
                      {taken});
}

absl::Status JetStream::EnsureConsumer(const std::string& stream, const json& config) {
  const std::string name = Text(config, "durable_name");
  const std::string what = absl::StrCat("consumer ", name, " of stream ", stream);
  const absl::StatusOr<json> there =
      Call(absl::StrCat("CONSUMER.INFO.", stream, ".", name), nullptr);
  if (!there.ok() && !absl::IsNotFound(there.status())) return there.status();
  const json is = there.ok() ? Part(*there, "config") : json::object();
  const std::vector<Difference> differences = DifferencesOf(config, is);
  // Also where nothing differs: the server tells of a consumer that another client is making before
  // it listens to pulls, and answers this only when it does.
  const absl::StatusOr<json> answer =
      Call(absl::StrCat("CONSUMER.DURABLE.CREATE.", stream, ".", name),
           {{"stream_name", stream}, {"config", Merged(is, config)}});
  if (answer.ok()) return CheckAccepted(config, *answer, what);
  if (ErrorCodeOf(answer.status()) == kOneConsumerOnly) return IsReadByOthers(stream, name);
  if (!there.ok() || absl::IsUnavailable(answer.status())) return answer.status();
  if (differences.empty()) return absl::OkStatus();  // an administrator's setting was refused
  return Incompatible(
      what,
      absl::StrCat(what, " is there with settings that cannot be changed: ", Describe(differences),
                   " (", answer.status().message(), "); delete the consumer: it is made anew"),
      differences);
}

absl::Status JetStream::IsReadByOthers(const std::string& stream, const std::string& consumer) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> readers, ReadersBeside(stream, consumer));
  // Those of a mirror in another account or cluster are not shown to us.
  const std::string others = readers.empty() ? "a mirror of it that this account does not show"
                                             : absl::StrJoin(readers, ", ");
  const std::string what = absl::StrCat("consumer ", consumer, " of stream ", stream);
  return Incompatible(
      what,
      absl::StrCat(what, " cannot be made: one consumer only reads a work queue, and there is ",
                   others, "; delete that (for a copy of the stream: nats stream backup)"),
      {Difference{"readers", others, "none"}});
}

absl::StatusOr<std::vector<std::string>> JetStream::ReadersBeside(const std::string& stream,
                                                                  const std::string& consumer) {
  std::vector<std::string> readers;
  MUSTER_ASSIGN_OR_RETURN(const json named,
                          Call(absl::StrCat("CONSUMER.NAMES.", stream), json::object()));
  for (const std::string& name : Field(named, "consumers", std::vector<std::string>())) {
    if (name != consumer) readers.push_back(absl::StrCat("consumer ", name));
  }
  for (size_t offset = 0, total = 1; offset < total;) {
    MUSTER_ASSIGN_OR_RETURN(const json answer, Call("STREAM.LIST", {{"offset", offset}}));
    const json page = Field(answer, "streams", json::array());
    total = page.is_array() && !page.empty() ? Field(answer, "total", size_t{0}) : 0;
    if (total == 0) break;
    offset += page.size();
    for (const json& info : page) {
      const json config = Part(info, "config");
      json origins = Field(config, "sources", json::array());
      origins.push_back(Part(config, "mirror"));
      for (const json& origin : origins) {
        if (!origin.is_object() || Text(origin, "name") != stream) continue;
        readers.push_back(absl::StrCat("stream ", Text(config, "name"), ", which copies it"));
      }
    }
  }
  return readers;
}

absl::StatusOr<json> JetStream::StreamConfig(const std::string& stream) {
  MUSTER_ASSIGN_OR_RETURN(const json answer, Call(absl::StrCat("STREAM.INFO.", stream), nullptr));
  return Part(answer, "config");
}

namespace {

// `info`: of a stream, as the server describes it.
StreamState StateIn(const json& info) {
  const json from = Part(info, "state");
  StreamState state;
  state.created = TimeOf(info, "created");
  state.messages = Field(from, "messages", uint64_t{0});
  state.bytes = Field(from, "bytes", uint64_t{0});
  state.first_sequence = Field(from, "first_seq", uint64_t{0});
  state.last_sequence = Field(from, "last_seq", uint64_t{0});
  state.first_time = TimeOf(from, "first_ts");
  state.last_time = TimeOf(from, "last_ts");
  return state;
}

ListedStream ListedIn(const json& info) {
  const json config = Part(info, "config");
  return {Text(config, "name"), StateIn(info),
          Field(Part(info, "state"), "consumer_count", int64_t{0}),
          std::max<int64_t>(Field(config, "max_bytes", int64_t{0}), 0)};
}

}  // namespace

absl::StatusOr<StreamState> JetStream::GetStream(const std::string& stream) {
  MUSTER_ASSIGN_OR_RETURN(const json answer, Call(absl::StrCat("STREAM.INFO.", stream), nullptr));
  return StateIn(answer);
}

absl::StatusOr<StreamPage> JetStream::ListStreams(size_t offset) {
  MUSTER_ASSIGN_OR_RETURN(const json answer, Call("STREAM.LIST", {{"offset", offset}}));
  StreamPage page;
  page.total = Field(answer, "total", size_t{0});
  const json streams = Field(answer, "streams", json::array());
  if (!streams.is_array()) return page;
  for (const json& info : streams) page.streams.push_back(ListedIn(info));
  return page;
}

absl::StatusOr<StorageUse> JetStream::GetStorageUse() {
  MUSTER_ASSIGN_OR_RETURN(const json info, Call("INFO", nullptr));
  return StorageUse{Field(info, "storage", uint64_t{0}),
                    std::max<int64_t>(Field(Part(info, "limits"), "max_storage", int64_t{0}), 0)};
}

absl::StatusOr<ConsumerState> JetStream::GetConsumer(const std::string& stream,
                                                     const std::string& consumer) {
  MUSTER_ASSIGN_OR_RETURN(const json answer,
                          Call(absl::StrCat("CONSUMER.INFO.", stream, ".", consumer), nullptr));
  ConsumerState state;
  state.ack_pending = Field(answer, "num_ack_pending", int64_t{0});
  state.pending = Field(answer, "num_pending", uint64_t{0});
  state.delivery = Field(Part(answer, "delivered"), "consumer_seq", uint64_t{0});
  state.delivered_sequence = Field(Part(answer, "delivered"), "stream_seq", uint64_t{0});
  // After a kill a server may report an ack floor that stays behind although nothing is pending
  // (2.9).
  state.settled_sequence = state.ack_pending == 0
                               ? state.delivered_sequence
                               : Field(Part(answer, "ack_floor"), "stream_seq", uint64_t{0});
  state.waiting = Field(answer, "num_waiting", int64_t{0});
  const json config = Part(answer, "config");
  state.ack_wait = absl::Nanoseconds(Field(config, "ack_wait", int64_t{0}));
  state.max_ack_pending = std::max<int64_t>(Field(config, "max_ack_pending", int64_t{0}), 0);
  state.paused = absl::Nanoseconds(Field(answer, "pause_remaining", int64_t{0}));
  return state;
}

absl::Status JetStream::DeleteStream(const std::string& stream) {
  return Call(absl::StrCat("STREAM.DELETE.", stream), nullptr).status();
}

absl::StatusOr<std::vector<std::string>> JetStream::StreamNames(const std::string& subjects) {
  std::vector<std::string> names;
  for (size_t total = 1; names.size() < total;) {
    MUSTER_ASSIGN_OR_RETURN(
        const json answer, Call("STREAM.NAMES", {{"subject", subjects}, {"offset", names.size()}}));
    const json page = Field(answer, "streams", json::array());
    total = page.is_array() && !page.empty() ? Field(answer, "total", size_t{0}) : 0;
    if (total == 0) break;
    for (const json& name : page) names.push_back(name.is_string() ? name.get<std::string>() : "");
  }
  std::sort(names.begin(), names.end());
  return names;
}

absl::StatusOr<std::vector<std::string>> JetStream::Subjects(const std::string& stream,
                                                             const std::string& filter) {
  std::vector<std::string> subjects;
  for (;;) {
    MUSTER_ASSIGN_OR_RETURN(const json answer,
                            Call(absl::StrCat("STREAM.INFO.", stream),
                                 {{"subjects_filter", filter}, {"offset", subjects.size()}}));
    const json state = Part(answer, "state");
    const auto page = state.find("subjects");
    if (page == state.end() || !page->is_object() || page->empty()) break;
    for (const auto& [subject, messages] : page->items()) subjects.push_back(subject);
    if (subjects.size() >= Field(answer, "total", size_t{0})) break;
  }
  std::sort(subjects.begin(), subjects.end());
  return subjects;
}

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

absl::StatusOr<PubAck> JetStream::Publish(const Outgoing& message) {
  MUSTER_ASSIGN_OR_RETURN(const auto acks, Publish(absl::MakeConstSpan(&message, 1)));
  return acks.front();
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
