// SPDX-License-Identifier: Apache-2.0

// The settings of an EventProcessor, and their limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/partition/options.h"

namespace muster::stream::processor {

// Where a group begins in a partition of which it has no checkpoint.
struct BeginAt {
  enum class Kind {
    kEarliest,  // the first event that is kept
    kLatest,    // behind the last one; saved as a checkpoint, so that a hand-over skips nothing
    kOffset,    // `offset`, or the nearest place that is kept
  };

  Kind kind = Kind::kEarliest;
  int64_t offset = 1;
};

// What follows when OnEvent fails. In each case, OnError is told of each failure.
struct FailureOptions {
  enum class Then {
    kRetry,  // for ever: the partition waits
    kSkip,   // after `attempts`, the event is passed over, and counted
    kStop,   // after `attempts`, the processor stops; Wait returns the error
  };

  Then then = Then::kRetry;
  int attempts = 5;  // of kSkip and kStop; the first one counts
  // Between attempts: doubles up to the maximum.
  absl::Duration min_backoff = absl::Milliseconds(100);
  absl::Duration max_backoff = absl::Seconds(30);
};

struct ProcessorOptions {
  std::string stream = "";
  // [a-z0-9-]; groups of one stream have their own owners and checkpoints. With the
  // stream's name, at most partition::kMaxGroupBytes − 1.
  std::string group = "";
  // No two processors of a group have the same; empty: one is made. The processor that started
  // first stops when another has its id, within a cycle.
  std::string member = "";

  // All processors of a group have the same.
  partition::Strategy strategy = partition::Strategy::kGreedy;
  absl::Duration interval = absl::Seconds(10);
  absl::Duration lease = absl::Seconds(40);
  // How long an event in hand may take when the partition is to be handed over. A handler that
  // takes longer works beside the next owner.
  absl::Duration grace = absl::Seconds(10);

  BeginAt begin = {};
  FailureOptions failure = {};
  // OnEvent is called with null when a partition has had no event for so long.
  absl::Duration max_wait = absl::InfiniteDuration();
  // The events of a partition that are read ahead. A read may exceed the bytes once: its number of
  // events is chosen by the largest event of the one before.
  int prefetch_events = 300;
  size_t prefetch_bytes = size_t{4} << 20;
  // How often each owned partition's checkpoint is read to see whether a replay has moved it.
  absl::Duration replay_check = absl::Seconds(2);
  // At most so many events are handled, and partitions read, at once; no more threads than
  // partitions are made.
  int handler_threads = 16;
  int fetch_threads = 16;
};

inline constexpr int kMaxThreads = 256;
inline constexpr int kMaxPrefetchEvents = 100'000;

// InvalidArgument, naming the field.
absl::Status Validate(const ProcessorOptions& options);

// "STREAM/GROUP": the group's name in muster/partition.
std::string GroupName(absl::string_view stream, absl::string_view group);

}  // namespace muster::stream::processor
