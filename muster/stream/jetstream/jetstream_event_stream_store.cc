// SPDX-License-Identifier: Apache-2.0
#include "muster/stream/jetstream/jetstream_event_stream_store.h"

#include <algorithm>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "muster/base/log.h"
#include "muster/base/random.h"
#include "muster/base/status.h"
#include "muster/nats/names.h"
#include "muster/nats/status.h"
#include "muster/stream/event_codec.h"
#include "muster/stream/jetstream/consumer_reader.h"
#include "nlohmann/json.hpp"

namespace muster::stream::jetstream {
namespace {

using nlohmann::json;

// Subject, headers and the like of a message with an event.
constexpr size_t kMessageOverhead = 1024;
// Between attempts to read a stream that another process makes at this moment.
constexpr absl::Duration kRaceWait = absl::Milliseconds(50);
constexpr int kRaceTries = 20;

StreamOptions Rounded(StreamOptions options) {
  options.retention = absl::Floor(options.retention, absl::Microseconds(1));
  return options;
}

std::string NameOf(absl::string_view stream, int partition) {
  return absl::StrCat("stream '", stream, "' partition ", partition);
}

// Whether the stream of the server, or the subject, is gone.
bool IsGone(const absl::Status& status) {
  return absl::IsNotFound(status) || nats::IsNobodyListens(status);
}

// Whether another process has made the stream, or makes it at this moment.
bool IsTaken(const absl::Status& status) {
  return absl::IsAlreadyExists(status) || nats::ErrorCodeOf(status) == nats::kSubjectsOverlap;
}

}  // namespace

absl::StatusOr<std::unique_ptr<JetStreamEventStreamStore>> JetStreamEventStreamStore::Open(
    nats::Connection* connection, const Options& options) {
  MUSTER_RETURN_IF_ERROR(nats::ValidateBucket(options.bucket));
  nats::JetStream jetstream(connection, options.timeout);
  MUSTER_ASSIGN_OR_RETURN(const int level, jetstream.ApiLevel());
  return std::unique_ptr<JetStreamEventStreamStore>(
      new JetStreamEventStreamStore(connection, options, level >= nats::kAtomicApiLevel));
}

JetStreamEventStreamStore::JetStreamEventStreamStore(nats::Connection* connection,
                                                     const Options& options, bool has_atomic)
    : options_(options),
      has_atomic_(has_atomic),
      is_atomic_(has_atomic && options.atomic_appends),
      jetstream_(connection, options.timeout),
      inbox_(connection),
      message_ids_(absl::StrCat(absl::Hex(base::RandomSeed()))) {}

// --- streams ---

absl::StatusOr<Description> JetStreamEventStreamStore::Read(absl::string_view stream) {
  MUSTER_RETURN_IF_ERROR(ValidateStreamName(stream));
  const std::string first = ServerStreamOf(options_.bucket, stream, {}, 0);
  const absl::StatusOr<json> config = jetstream_.StreamConfig(first);
  if (absl::IsNotFound(config.status())) {
    base::MutexLock lock(&mu_);
    if (const auto noted = noted_.find(stream); noted != noted_.end()) noted_.erase(noted);
    return absl::NotFoundError(absl::StrCat("there is no stream '", stream, "'"));
  }
  MUSTER_RETURN_IF_ERROR(config.status());
  std::optional<Description> description = DescriptionIn(*config);
  if (!description.has_value()) {
    MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> others,
                            jetstream_.StreamNames(OtherPartitionsOf(options_.bucket, stream)));
    description = DescriptionWithout(*config, options_.bucket, stream, others);
  }
  if (!description.has_value()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the server's stream ", first, " was not made by muster, or by a newer one"));
  }
  base::MutexLock lock(&mu_);
  noted_[std::string(stream)] = *description;
  return *description;
}

absl::StatusOr<Description> JetStreamEventStreamStore::Find(absl::string_view stream,
                                                            int partition) {
  const auto has = [&](const Description& description) {
    return partition >= 0 && partition < description.options.partitions;
  };
  {
    base::MutexLock lock(&mu_);
    const auto noted = noted_.find(stream);
    if (noted != noted_.end() && has(noted->second)) return noted->second;
  }
  MUSTER_ASSIGN_OR_RETURN(Description description, Read(stream));
  if (has(description)) return description;
  return absl::NotFoundError(absl::StrCat("stream '", stream, "' has ",
                                          description.options.partitions,
                                          " partitions, and no partition ", partition));
}

template <typename Result>
absl::StatusOr<Result> JetStreamEventStreamStore::WithPartition(
    absl::string_view stream, int partition,
    absl::FunctionRef<absl::StatusOr<Result>(const Description&)> act) {
  MUSTER_ASSIGN_OR_RETURN(const Description noted, Find(stream, partition));
  absl::StatusOr<Result> result = act(noted);
  if (!IsGone(result.status())) return result;
  MUSTER_ASSIGN_OR_RETURN(const Description now, Read(stream));
  if (now.id == noted.id && partition == 0) return result;
  MUSTER_ASSIGN_OR_RETURN(const Description again, Find(stream, partition));
  return act(again);
}

absl::Status JetStreamEventStreamStore::MakePartition(absl::string_view stream,
                                                      const Description& description,
                                                      int partition) {
  const json config =
      ConfigOf(options_.bucket, stream, description, partition, options_.replicas, has_atomic_);
  return jetstream_
      .Call(absl::StrCat("STREAM.CREATE.",
                         ServerStreamOf(options_.bucket, stream, description, partition)),
            config)
      .status();
}

absl::Status JetStreamEventStreamStore::Create(absl::string_view stream,
                                               const StreamOptions& options) {
  MUSTER_RETURN_IF_ERROR(ValidateStreamName(stream));
  MUSTER_RETURN_IF_ERROR(ValidateOptions(options));
  const Description wanted{absl::StrCat(absl::Hex(base::RandomSeed())), Rounded(options)};
  absl::StatusOr<Description> there = Read(stream);
  if (absl::IsNotFound(there.status())) {
    MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> all, List());
    if (all.size() >= static_cast<size_t>(kMaxStreams)) {
      return absl::ResourceExhaustedError(
          absl::StrCat("there are ", kMaxStreams, " streams already"));
    }
    RemoveOrphans(stream, wanted.id);
    absl::Status made;
    for (int i = options.partitions; made.ok() && i-- > 0;) made = MakePartition(stream, wanted, i);
    if (made.ok()) return made;
    if (!absl::IsUnavailable(made)) DeleteOthers(stream, wanted).IgnoreError();
    if (!IsTaken(made)) return base::Annotate(made, absl::StrCat("stream '", stream, "'"));
    there = Read(stream);
    for (int i = 0; i < kRaceTries && absl::IsNotFound(there.status()); ++i) {
      base::SleepUnlessStopped(options_.clock, kRaceWait, {});
      there = Read(stream);
    }
  }
  MUSTER_RETURN_IF_ERROR(there.status());
  if (there->options == wanted.options) return absl::OkStatus();
  return absl::AlreadyExistsError(absl::StrCat("stream '", stream, "' exists with other options"));
}

absl::Status JetStreamEventStreamStore::Delete(absl::string_view stream) {
  MUSTER_ASSIGN_OR_RETURN(const Description gone, Read(stream));
  MUSTER_RETURN_IF_ERROR(jetstream_.DeleteStream(ServerStreamOf(options_.bucket, stream, gone, 0)));
  {
    base::MutexLock lock(&mu_);
    noted_.erase(std::string(stream));
  }
  const absl::Status others = DeleteOthers(stream, gone);
  RemoveOrphans(stream, gone.id);
  return others;
}

absl::Status JetStreamEventStreamStore::DeleteOthers(absl::string_view stream,
                                                     const Description& description) {
  absl::Status first_failure;
  for (int i = 1; i < description.options.partitions; ++i) {
    const absl::Status deleted =
        jetstream_.DeleteStream(ServerStreamOf(options_.bucket, stream, description, i));
    if (!absl::IsNotFound(deleted)) first_failure.Update(deleted);
    if (absl::IsUnavailable(deleted)) break;
  }
  return base::Annotate(first_failure, absl::StrCat("stream '", stream, "'"));
}

void JetStreamEventStreamStore::RemoveOrphans(absl::string_view stream, absl::string_view id) {
  const auto all = jetstream_.StreamNames(OtherPartitionsOf(options_.bucket, stream));
  if (!all.ok()) return;
  for (const std::string& orphan : *all) {
    const std::string of = IdIn(options_.bucket, stream, orphan);
    if (of.empty() || of == id) continue;
    const absl::StatusOr<nats::StreamState> state = jetstream_.GetStream(orphan);
    if (!state.ok() || options_.clock->Now() - state->created < kOrphanAge) continue;
    base::LogUnlessOk(base::kWarning, "a partition of an earlier stream was not removed",
                      jetstream_.DeleteStream(orphan), {{"stream", orphan}});
  }
}

absl::StatusOr<std::vector<std::string>> JetStreamEventStreamStore::List() {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> all,
                          jetstream_.StreamNames(FirstPartitionsOf(options_.bucket)));
  std::vector<std::string> names;
  for (const std::string& server_stream : all) {
    std::optional<std::string> name = StreamNameIn(options_.bucket, server_stream);
    if (name.has_value()) names.push_back(*std::move(name));
  }
  std::sort(names.begin(), names.end());
  return names;
}

absl::StatusOr<StreamOptions> JetStreamEventStreamStore::Describe(absl::string_view stream) {
  MUSTER_ASSIGN_OR_RETURN(const Description description, Read(stream));
  return description.options;
}

// --- partitions ---

absl::StatusOr<PartitionExtent> JetStreamEventStreamStore::Extent(absl::string_view stream,
                                                                  int partition) {
  return WithPartition<PartitionExtent>(
      stream, partition, [&](const Description& found) -> absl::StatusOr<PartitionExtent> {
        MUSTER_ASSIGN_OR_RETURN(
            const nats::StreamState state,
            jetstream_.GetStream(ServerStreamOf(options_.bucket, stream, found, partition)));
        return ExtentOf(state);
      });
}

absl::StatusOr<std::unique_ptr<PartitionReader>> JetStreamEventStreamStore::OpenReader(
    absl::string_view stream, int partition, int64_t offset) {
  MUSTER_RETURN_IF_ERROR(ValidateOffset(offset));
  using Reader = std::unique_ptr<PartitionReader>;
  return WithPartition<Reader>(
      stream, partition, [&](const Description& found) -> absl::StatusOr<Reader> {
        ServerPartition where;
        where.name = NameOf(stream, partition);
        where.stream = ServerStreamOf(options_.bucket, stream, found, partition);
        MUSTER_ASSIGN_OR_RETURN(const nats::StreamState state, jetstream_.GetStream(where.stream));
        where.created = state.created;
        return std::make_unique<ConsumerReader>(&jetstream_, &inbox_, options_.clock,
                                                options_.pull_expires, std::move(where), offset);
      });
}

absl::StatusOr<int64_t> JetStreamEventStreamStore::Append(absl::string_view stream, int partition,
                                                          absl::Span<const NewEvent> events) {
  MUSTER_RETURN_IF_ERROR(ValidateAppend(events));
  const auto most = static_cast<size_t>(jetstream_.connection()->max_payload());
  std::vector<std::string> contents;
  contents.reserve(events.size());
  for (const NewEvent& event : events) {
    contents.push_back(EncodeContent(event));
    if (contents.back().size() + kMessageOverhead <= most) continue;
    return absl::InvalidArgumentError(absl::StrCat("an event of ", contents.back().size(),
                                                   " bytes: the server takes messages up to ", most,
                                                   " (its max_payload)"));
  }
  return WithPartition<int64_t>(
      stream, partition, [&](const Description& found) -> absl::StatusOr<int64_t> {
        const auto offset =
            AppendAt(SubjectOf(options_.bucket, stream, found, partition), contents);
        if (offset.ok()) return offset;
        return base::Annotate(offset.status(), NameOf(stream, partition));
      });
}

absl::StatusOr<int64_t> JetStreamEventStreamStore::AppendAt(
    const std::string& subject, absl::Span<const std::string> contents) {
  if (contents.size() > 1 && is_atomic_) {
    std::vector<nats::Outgoing> batch;
    for (const std::string& content : contents) {
      batch.push_back({.subject = subject, .data = content});
    }
    const auto acks = jetstream_.PublishAtomically(batch);
    if (acks.ok()) return static_cast<int64_t>(acks->front().sequence);
    if (!nats::IsAtomicRefusal(acks.status())) return acks.status();
  }
  if (contents.size() > 1) return AppendChain(subject, contents);
  MUSTER_ASSIGN_OR_RETURN(
      const nats::PubAck ack,
      jetstream_.Publish(nats::Outgoing{.subject = subject, .data = contents.front()}));
  return static_cast<int64_t>(ack.sequence);
}

// A round ends where an event of another producer came between: the next round begins with the
// first event that was refused, which is taken wherever it comes.
absl::StatusOr<int64_t> JetStreamEventStreamStore::AppendChain(
    const std::string& subject, absl::Span<const std::string> contents) {
  const base::KeyedMutex::Lock chain(&chains_, subject);
  const std::string ids = absl::StrCat(message_ids_, ".", absl::Hex(++last_chain_), ".");
  int64_t first = 0;
  for (size_t done = 0; done < contents.size();) {
    std::vector<nats::Outgoing> round;
    for (size_t i = done; i < contents.size(); ++i) {
      nats::Outgoing message{.subject = subject, .data = contents[i]};
      message.headers.push_back({nats::kMessageId, absl::StrCat(ids, i)});
      if (i > done)
        message.headers.push_back({nats::kExpectedLastMessageId, absl::StrCat(ids, i - 1)});
      round.push_back(std::move(message));
    }
    MUSTER_ASSIGN_OR_RETURN(const auto acks, jetstream_.Publish(round));
    const size_t before = done;
    absl::Status refused;
    for (size_t i = 0; i < acks.size() && refused.ok(); ++i) {
      refused = acks[i].status();
      if (refused.ok() && done++ == 0) first = static_cast<int64_t>(acks[i]->sequence);
    }
    const bool may_go_on = nats::ErrorCodeOf(refused) == nats::kWrongLastMessageId && done > before;
    if (!refused.ok() && !may_go_on) return refused;
  }
  return first;
}

}  // namespace muster::stream::jetstream
