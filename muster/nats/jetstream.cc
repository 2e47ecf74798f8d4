// SPDX-License-Identifier: Apache-2.0

// JetStream: streams and consumers.

#include "muster/nats/jetstream.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/random.h"
#include "muster/base/status.h"
#include "muster/nats/api_answer.h"
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

// An error code of the server that does not follow from its HTTP code.
constexpr int kNotEnabledForAccount = 10039;

// Between attempts to make a stream that another client makes at the same moment.
constexpr absl::Duration kFirstRaceWait = absl::Milliseconds(2);
constexpr absl::Duration kLastRaceWait = absl::Seconds(1);

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
  return absl::FailedPreconditionError(
      "the NATS server runs no JetStream for us; start it with JetStream (nats-server -js, or "
      "jetstream {} in its configuration), and enable it for this account");
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

}  // namespace muster::nats
