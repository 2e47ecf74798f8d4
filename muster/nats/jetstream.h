// JetStream: the calls of NATS's persistence layer that muster makes, over the server's JSON API.
//
// Spoken directly, not through nats.c: what a call may ask and what the server says of it differs
// from release to release of the library, but the API keeps its form (NATS ADR-1, ADR-2).
#pragma once

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

// What a stream answers to a message: it is stored, as the server understands that.
struct PubAck {
  uint64_t sequence = 0;
  bool duplicate = false;  // a message with this Nats-Msg-Id was there; `sequence` is its
};

struct StreamState {
  absl::Time created;
  uint64_t messages = 0;
  uint64_t bytes = 0;
  uint64_t first_sequence = 0;
  uint64_t last_sequence = 0;
  absl::Time first_time;  // of the first message, if there is one
};

struct ConsumerState {
  int64_t ack_pending = 0;          // delivered, and neither acknowledged nor given back
  uint64_t pending = 0;             // never delivered
  uint64_t delivered_sequence = 0;  // the last of the stream that was delivered
  uint64_t settled_sequence = 0;    // up to here all were delivered and acknowledged
  absl::Duration ack_wait;          // then what was not acknowledged is delivered again
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
// ResourceExhausted (a limit of the server), Unavailable (no answer: the outcome is unknown), and
// Internal for the rest. The message names the server's own code.
//
// Thread-safe.
class JetStream {
 public:
  // `connection` is not owned. Each call answers within `timeout`.
  JetStream(Connection* connection, absl::Duration timeout)
      : connection_(connection), timeout_(timeout) {}

  Connection* connection() const { return connection_; }
  absl::Duration timeout() const { return timeout_; }

  // FailedPrecondition: the server runs no JetStream, or none for our account.
  absl::Status CheckEnabled();

  // Makes the stream, or changes it to be as `config` says. What the server did not accept of it,
  // or another stream is in the way of, is FailedPrecondition and named, as a base::Mismatch too,
  // but for the fields in `optional`: an older server leaves out what it does not know.
  absl::Status EnsureStream(const nlohmann::json& config,
                            absl::Span<const absl::string_view> optional = {});
  // A durable consumer, likewise.
  absl::Status EnsureConsumer(const std::string& stream, const nlohmann::json& config);

  absl::StatusOr<nlohmann::json> StreamConfig(const std::string& stream);
  absl::StatusOr<StreamState> GetStream(const std::string& stream);
  absl::StatusOr<ConsumerState> GetConsumer(const std::string& stream, const std::string& consumer);
  absl::Status DeleteStream(const std::string& stream);
  // Of the streams that have a subject which matches `subjects`, in order.
  absl::StatusOr<std::vector<std::string>> StreamNames(const std::string& subjects);
  // Of the messages that the stream holds, those that match `filter`; in order.
  absl::StatusOr<std::vector<std::string>> Subjects(const std::string& stream,
                                                    const std::string& filter);

  // One answer for each message, in order.
  absl::StatusOr<std::vector<absl::StatusOr<PubAck>>> Publish(absl::Span<const Outgoing> messages);
  absl::StatusOr<PubAck> Publish(const Outgoing& message);

  absl::StatusOr<StoredMessage> GetMessage(const std::string& stream, uint64_t sequence);
  // The first at `sequence` or behind it whose subject matches.
  absl::StatusOr<StoredMessage> NextMessage(const std::string& stream, uint64_t sequence,
                                            const std::string& subjects);
  absl::StatusOr<StoredMessage> LastMessage(const std::string& stream, const std::string& subject);
  absl::Status DeleteMessage(const std::string& stream, uint64_t sequence);
  // Removes what matches `subjects`, or all, and lies at or before the sequence `last`. Answers how
  // many.
  absl::StatusOr<int64_t> Purge(const std::string& stream, const std::string& subjects = "",
                                std::optional<uint64_t> last = std::nullopt);

  // One call of the API; `endpoint` as "STREAM.INFO.work". The server's error, if it answers one,
  // as a status.
  absl::StatusOr<nlohmann::json> Call(const std::string& endpoint, const nlohmann::json& request);

 private:
  // What EnsureStream answers where the server refuses to change the stream that is there.
  absl::Status CannotChange(const nlohmann::json& config, const absl::Status& refusal,
                            absl::Span<const absl::string_view> optional);
  // And where other streams have its subjects.
  absl::Status Taken(const nlohmann::json& config);
  absl::StatusOr<StoredMessage> Get(const std::string& stream, const nlohmann::json& request);

  Connection* const connection_;  // not owned
  const absl::Duration timeout_;
};

// Error codes of the server that callers tell apart (its errors.json).
inline constexpr int kWrongLastSequence = 10071;
inline constexpr int kNoMessageFound = 10037;  // but the stream is there

// Headers of messages to streams.
inline constexpr char kExpectedLastSubjectSequence[] = "Nats-Expected-Last-Subject-Sequence";
inline constexpr char kRollup[] = "Nats-Rollup";
inline constexpr char kRollupSubject[] = "sub";  // replaces all of the subject

// Whether a message was asked for of a stream that is not there.
bool IsNoStream(const absl::Status& status);

// The number in an error that JetStream answered, 0 if it is none of those.
int ErrorCodeOf(const absl::Status& status);

// What is there on a server, held against what was asked for.

// A setting that is not as it should be; both values as JSON.
struct Difference {
  std::string field;
  std::string is;  // "not set" where the server does not have it
  std::string wanted;
};

// The fields of `wanted` that are otherwise in `got`, but for those in `optional`. What no server
// changes later comes first.
std::vector<Difference> DifferencesOf(const nlohmann::json& wanted, const nlohmann::json& got,
                                      absl::Span<const absl::string_view> optional = {});

// "storage is "memory", not "file", …"; empty: there are none.
std::string Describe(absl::Span<const Difference> differences);

// FailedPrecondition, with the first of `differences` as a base::Mismatch of `name`.
absl::Status Incompatible(absl::string_view name, absl::string_view message,
                          absl::Span<const Difference> differences);

}  // namespace muster::nats
