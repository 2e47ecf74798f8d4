// SPDX-License-Identifier: Apache-2.0

// JetStream: the calls of NATS's persistence layer that muster makes, over the server's JSON API.
//
// The calls do not use the JetStream functions of nats.c: those differ from release to release of
// the library, but the API keeps its form (NATS ADR-1, ADR-2).
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "muster/nats/connection.h"
#include "nlohmann/json_fwd.hpp"

namespace muster::nats {

// The answer of a stream to a message: the message is stored, at the durability of the server.
struct PubAck {
  uint64_t sequence = 0;
  bool duplicate = false;  // a message with this Nats-Msg-Id was there, at `sequence`
};

struct StreamState {
  absl::Time created;
  uint64_t messages = 0;
  uint64_t bytes = 0;
  uint64_t first_sequence = 0;
  uint64_t last_sequence = 0;
  absl::Time first_time;  // of the first message, if there is one
  absl::Time last_time;   // of the last message that there was
};

// A stream as the list of all streams has it.
struct ListedStream {
  std::string name;
  StreamState state;
  int64_t consumers = 0;
  int64_t max_bytes = 0;  // 0: no bound
};

struct StreamPage {
  std::vector<ListedStream> streams;
  size_t total = 0;  // of all pages
};

// What an account stores on disk.
struct StorageUse {
  uint64_t bytes = 0;
  int64_t max_bytes = 0;  // 0: the account has no bound of its own
};

struct ConsumerState {
  int64_t ack_pending = 0;          // delivered, and neither acknowledged nor given back
  uint64_t pending = 0;             // never delivered
  uint64_t delivered_sequence = 0;  // the last delivered message of the stream
  uint64_t delivery = 0;            // the number of the last delivery, over all messages
  uint64_t settled_sequence = 0;    // all messages up to here were delivered and acknowledged
  absl::Duration ack_wait;          // unacknowledged messages are delivered again after this time
  int64_t waiting = 0;              // pulls that wait at the server for a message
  int64_t max_ack_pending = 0;  // at this `ack_pending` no new message is delivered; 0: no bound
  // An administrator has paused the consumer for so long from now on: nothing is delivered. Zero:
  // it is not paused, or the server is older than 2.11 and cannot pause it.
  absl::Duration paused;
};

struct StoredMessage {
  std::string subject;
  uint64_t sequence = 0;
  absl::Time time;
  std::vector<Header> headers;
  std::string data;
};

// Statuses of every call: NotFound (no such stream, consumer or message), AlreadyExists (a stream
// or consumer with another configuration), FailedPrecondition (not the sequence that was expected),
// ResourceExhausted (a limit of the server), Unavailable (no answer: the outcome is unknown; or too
// few servers of the cluster are there), and Internal for the rest. The message names the server's
// own code.
//
// Thread-safe.
class JetStream {
 public:
  // `connection` is not owned. Each call returns within `timeout`.
  JetStream(Connection* connection, absl::Duration timeout);

  Connection* connection() const { return connection_; }
  absl::Duration timeout() const { return timeout_; }

  // Returns the level of the server's API: 0 before 2.11, which has no levels, 2 from 2.12 on.
  // FailedPrecondition: the server runs no JetStream, or none for our account; the
  // message says how to mend that.
  absl::StatusOr<int> ApiLevel();

  // Makes the stream, or changes it to match `config`. Settings of a stream that is there, and that
  // `config` does not name, are an administrator's and stay. FailedPrecondition: the server did not
  // accept a setting, or another stream is in the way; the error names it, also as a
  // base::Mismatch.
  absl::Status EnsureStream(const nlohmann::json& config);
  // Does the same for a durable consumer.
  absl::Status EnsureConsumer(const std::string& stream, const nlohmann::json& config);

  absl::StatusOr<nlohmann::json> StreamConfig(const std::string& stream);
  absl::StatusOr<StreamState> GetStream(const std::string& stream);
  absl::StatusOr<ConsumerState> GetConsumer(const std::string& stream, const std::string& consumer);
  absl::Status DeleteStream(const std::string& stream);
  // Returns the names of the streams with a subject that matches `subjects`, in order.
  absl::StatusOr<std::vector<std::string>> StreamNames(const std::string& subjects);
  // Returns the streams of the account from the `offset`th on, as many as the server puts into one
  // answer; none: there are no more. Streams that come and go meanwhile may be missed.
  absl::StatusOr<StreamPage> ListStreams(size_t offset);
  absl::StatusOr<StorageUse> GetStorageUse();
  // Returns the subjects of stored messages that match `filter`, in order.
  absl::StatusOr<std::vector<std::string>> Subjects(const std::string& stream,
                                                    const std::string& filter);

  // Returns one result per message, in order.
  absl::StatusOr<std::vector<absl::StatusOr<PubAck>>> Publish(absl::Span<const Outgoing> messages);
  // Of a message with kExpectedLastSubjectSequence: waits while a cluster stores another message of
  // the subject, for half of the timeout at most; then Unavailable, and nothing is stored.
  absl::StatusOr<PubAck> Publish(const Outgoing& message);
  // Stores all of `messages`, at most kMaxAtomicMessages, or none: an atomic batch (NATS ADR-50),
  // with neighbouring sequences and one acknowledgement. Their stream must have the setting
  // kAllowAtomic; an older server stores them one by one, and the result is Unavailable. After any
  // other error nothing is stored; if IsAtomicRefusal(), Publish may well succeed: a message is
  // there already, too many batches are on their way, ….
  absl::StatusOr<std::vector<PubAck>> PublishAtomically(absl::Span<const Outgoing> messages);

  absl::StatusOr<StoredMessage> GetMessage(const std::string& stream, uint64_t sequence);
  // Returns the first message at or after `sequence` with a subject that matches `subjects`.
  absl::StatusOr<StoredMessage> NextMessage(const std::string& stream, uint64_t sequence,
                                            const std::string& subjects);
  // Asks at once for the first message at or after `sequence` with a subject that matches
  // `subjects`, and for the `window` - 1 sequences behind `sequence`, whatever their subjects.
  // Returns what is there, in order: the first message, and those of the sequences that are beyond
  // it. Empty: there is no first message.
  absl::StatusOr<std::vector<StoredMessage>> NextMessages(const std::string& stream,
                                                          uint64_t sequence, uint64_t window,
                                                          const std::string& subjects);
  absl::StatusOr<StoredMessage> LastMessage(const std::string& stream, const std::string& subject);
  // Asks for the last message of each subject at once; nullopt: there is none, or no stream.
  absl::StatusOr<std::vector<std::optional<StoredMessage>>> LastMessages(
      const std::string& stream, absl::Span<const std::string> subjects);
  // NotFound: there is no such message, or no stream (IsNoStream).
  absl::Status DeleteMessage(const std::string& stream, uint64_t sequence);
  // Removes the messages that match `subjects` (empty: all) up to and including the sequence
  // `last`. Returns how many.
  absl::StatusOr<int64_t> Purge(const std::string& stream, const std::string& subjects = "",
                                std::optional<uint64_t> last = std::nullopt);

  // Makes one call of the API; `endpoint` is such as "STREAM.INFO.work". Returns an error of the
  // server as a status.
  absl::StatusOr<nlohmann::json> Call(const std::string& endpoint, const nlohmann::json& request);

 private:
  // Aborted: another client makes, or deletes, the same stream at this moment.
  absl::Status TryToEnsureStream(const nlohmann::json& config);
  // EnsureStream of a stream that is there.
  absl::Status ChangeStream(const nlohmann::json& config);
  // The error of EnsureConsumer when something else reads the stream, which is a work queue; names
  // it.
  absl::Status IsReadByOthers(const std::string& stream, const std::string& consumer);
  // What reads `stream` beside `consumer`: consumers, and streams that copy it, in words.
  absl::StatusOr<std::vector<std::string>> ReadersBeside(const std::string& stream,
                                                         const std::string& consumer);
  // The error of EnsureStream when other streams have its subjects. Aborted: none has them.
  absl::Status Taken(const nlohmann::json& config);
  absl::StatusOr<StoredMessage> Get(const std::string& stream, const nlohmann::json& request);

  Connection* const connection_;  // not owned
  const absl::Duration timeout_;
  const std::string batch_ids_;  // what the ids of atomic batches begin with
  std::atomic<uint64_t> batches_ = 0;
};

// Error codes of the server that callers tell apart (its errors.json).
inline constexpr int kWrongLastSequence = 10071;
inline constexpr int kLastSequenceUndecided = 10164;  // another message is on its way
inline constexpr int kNoMessageFound = 10037;         // but the stream is there
inline constexpr int kWrongLastMessageId = 10070;
inline constexpr int kSubjectsOverlap = 10065;   // with those of another stream
inline constexpr int kOneConsumerOnly = 10099;   // reads a work queue, and there is another
inline constexpr int kAtomicNotAllowed = 10174;  // by the stream (kAllowAtomic)

// The setting of a stream that takes atomic batches; for servers of API level kAtomicApiLevel.
inline constexpr char kAllowAtomic[] = "allow_atomic";
inline constexpr int kAtomicApiLevel = 2;
inline constexpr size_t kMaxAtomicMessages = 1000;

// Headers of messages to streams.
inline constexpr char kExpectedLastSubjectSequence[] = "Nats-Expected-Last-Subject-Sequence";
inline constexpr char kMessageId[] = "Nats-Msg-Id";
inline constexpr char kExpectedLastMessageId[] = "Nats-Expected-Last-Msg-Id";
inline constexpr char kRollup[] = "Nats-Rollup";
inline constexpr char kRollupSubject[] = "sub";  // the message replaces all others of its subject

// Whether `status` says that the stream of a requested message does not exist.
bool IsNoStream(const absl::Status& status);

// Returns the error code in an error of JetStream; 0 for any other status.
int ErrorCodeOf(const absl::Status& status);

// Whether `status` says that the server takes these messages, but not as an atomic batch.
bool IsAtomicRefusal(const absl::Status& status);

// Comparison of the settings on a server with those that were asked for.

// A setting with another value than was asked for; both values as JSON.
struct Difference {
  std::string field;
  std::string is;  // "not set" when the server has no such setting
  std::string wanted;
};

// Returns the fields of `wanted` that differ in `got`, except those in `optional`. Settings that no
// server changes later come first.
std::vector<Difference> DifferencesOf(const nlohmann::json& wanted, const nlohmann::json& got,
                                      absl::Span<const absl::string_view> optional = {});

// "storage is "memory", not "file", …"; empty when there are none.
std::string Describe(absl::Span<const Difference> differences);

// FailedPrecondition, with the first of `differences` as a base::Mismatch of `name`.
absl::Status Incompatible(absl::string_view name, absl::string_view message,
                          absl::Span<const Difference> differences);

}  // namespace muster::nats
