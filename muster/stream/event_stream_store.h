// SPDX-License-Identifier: Apache-2.0

// EventStreamStore: the seam of event streams, which keep what a queue deletes. A stream is a
// number of partitions; each is a log to which producers append and from which consumer groups
// read, each group at its own place. An event stays until its retention is over,
// read or not.
//
//   producers ──► Append ──► partition 0  [ first … next ) ──► PartitionReader of group `store`
//                            partition 1  [ first … next )     PartitionReader of group `audit`
//
// Events of one partition are read in the order of their appends. Offsets begin at 1 and grow by 1,
// so an event's offset is its sequence number, too, and `next` − `first` events are kept, but for
// those that damage has taken: readers pass over what a repair has found lost. An append
// whose outcome is unknown may have been carried out: an event may come twice, never out of order
// with what its producer appended after it.
//
// Errors:
//   InvalidArgument     an argument breaks a limit below; nothing was done
//   NotFound            there is no such stream or partition
//   AlreadyExists       Create over a stream with other options
//   FailedPrecondition  the store was opened read-only
//   OutOfRange          a reader's place lies outside what is kept (PartitionReader::Next)
//   ResourceExhausted   a limit or a full disk; try again later
//   Unavailable         the engine cannot answer now; the outcome is unknown: try again
//   DataLoss            a stored event is corrupt; the message names it
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace muster::stream {

// A partition's reader reads each of them, and a member of a group keeps a record of each.
inline constexpr int kMaxPartitions = 1024;
inline constexpr int kMaxStreams = 1000;
inline constexpr size_t kMaxNameBytes = 63;
// Larger bodies belong into a blob: a stream is for events, not for files. An event with the
// largest body, key and properties is below 1 MiB, the largest message of a NATS server as it
// comes.
inline constexpr size_t kMaxBodyBytes = size_t{960} << 10;
inline constexpr size_t kMaxKeyBytes = 1024;
inline constexpr size_t kMaxPropertiesBytes = size_t{8} << 10;  // names and values together
// An append is one write, which others wait for.
inline constexpr size_t kMaxAppendEvents = 1000;
inline constexpr size_t kMaxAppendBytes = size_t{8} << 20;
inline constexpr int kMaxReadEvents = 4096;
// A read ends behind the event with which it holds this much: it bounds what a reader has in
// memory.
inline constexpr size_t kMaxReadBytes = size_t{8} << 20;
inline constexpr absl::Duration kMinRetention = absl::Seconds(1);

struct StreamOptions {
  int partitions = 4;
  // An event is kept at least so long, unless max_bytes forces it out. InfiniteDuration: for ever.
  absl::Duration retention = absl::Hours(24 * 7);
  // Of one partition, as its engine counts them; the oldest events go first, an event larger than
  // this at once. 0: no bound.
  int64_t max_bytes = 0;

  bool operator==(const StreamOptions&) const = default;
};

// Name/value pairs that travel with an event.
using Properties = std::map<std::string, std::string>;

// What a producer appends.
struct NewEvent {
  // Empty: none. PartitionOf (event_producer.h) sends a key to one partition.
  std::string key = {};
  std::string body = {};
  Properties properties = {};
};

struct Event {
  int64_t offset = 0;  // in its partition, from 1
  absl::Time appended = {};
  std::string key = "";
  std::string body = "";
  Properties properties = {};
};

// What a partition keeps: the events first ≤ offset < next. first == next: none.
struct PartitionExtent {
  int64_t first = 1;
  int64_t next = 1;
  absl::Time last_appended = absl::InfinitePast();  // of the last event ever, if it is known
  // Of the stream: if it is deleted and made anew, it has another. 0: the engine does not tell.
  uint64_t incarnation = 0;

  int64_t count() const { return next - first; }
};

// Reads one partition, from one place on. One thread at a time; it may be another than the one that
// opened it, and it is destroyed before its store.
class PartitionReader {
 public:
  virtual ~PartitionReader() = default;

  // Returns 1 to `max_events` (1 to kMaxReadEvents) events, or none if there is none within `wait`
  // or Cancel was called. OutOfRange: retention has passed the reader's place, or the place lies
  // beyond the end; the reader stays where it is. Errors other than this do not move it either:
  // call again.
  virtual absl::StatusOr<std::vector<Event>> Next(int max_events, absl::Duration wait) = 0;

  // Ends a Next that waits, and makes later ones return at once. From any thread.
  virtual void Cancel() = 0;
};

// Thread-safe.
class EventStreamStore {
 public:
  virtual ~EventStreamStore() = default;

  // OK as well if the stream is there with the same options.
  virtual absl::Status Create(absl::string_view stream, const StreamOptions& options) = 0;
  // Removes the stream with its events. Its readers get NotFound. Of checkpoints it knows nothing.
  virtual absl::Status Delete(absl::string_view stream) = 0;
  // The names, sorted.
  virtual absl::StatusOr<std::vector<std::string>> List() = 0;
  virtual absl::StatusOr<StreamOptions> Describe(absl::string_view stream) = 0;
  virtual absl::StatusOr<PartitionExtent> Extent(absl::string_view stream, int partition) = 0;

  // Appends the events in their order and returns the offset of the first. After OK they survive
  // what the engine's acknowledgements survive. After an error all may have been appended, or none;
  // where the engine has no atomic append (JetStream as it comes), also only the first of them, and
  // events of other producers may then lie between those of one append. To append them all again
  // repeats events, but reorders none. An append to several partitions is several appends.
  virtual absl::StatusOr<int64_t> Append(absl::string_view stream, int partition,
                                         absl::Span<const NewEvent> events) = 0;

  // Reads from `offset` on, at least 1; beyond `next`, Next says OutOfRange. NotFound: no such
  // partition. Any number of readers.
  virtual absl::StatusOr<std::unique_ptr<PartitionReader>> OpenReader(absl::string_view stream,
                                                                      int partition,
                                                                      int64_t offset) = 0;
};

// InvalidArgument, naming the field and its bounds; every engine enforces these.

// 1 to kMaxNameBytes of [a-z0-9-], no dash at either end.
absl::Status ValidateStreamName(absl::string_view stream);
absl::Status ValidateOptions(const StreamOptions& options);
// What counts towards kMaxAppendBytes: body, key and properties.
size_t SizeOf(const NewEvent& event);
// Of the events of one append.
absl::Status ValidateAppend(absl::Span<const NewEvent> events);
// Of PartitionReader::Next.
absl::Status ValidateRead(int max_events);
// Of OpenReader.
absl::Status ValidateOffset(int64_t offset);

}  // namespace muster::stream
