// SPDX-License-Identifier: Apache-2.0

// Session: one partition of an EventProcessor, from when its events may be read until it is closed.
// A replay ends one session and begins another under the same epoch.
#pragma once

#include <atomic>
#include <deque>
#include <functional>

#include "absl/time/time.h"
#include "muster/stream/processor/event_handler.h"
#include "muster/stream/processor/partition_source.h"

namespace muster::stream::processor {

//   opening ── a fetcher ──► open ── a handler thread: OnPartitionInitializing ──► initialized
//      └────────────┴───────────── closing ── a handler thread: OnPartitionClosing ──► closed
class Session final : public PartitionContext {
 public:
  struct Setup {
    PartitionSource::Setup source;
    // Whether the member holds the partition under the session's epoch now.
    std::function<bool()> is_held = nullptr;
    // A checkpoint was refused: a replay may have moved it.
    std::function<void(Session*)> on_replay = nullptr;
  };

  explicit Session(Setup setup) : setup_(std::move(setup)), source_(setup_.source) {}

  int partition() const override { return setup_.source.partition; }
  int64_t epoch() const override { return setup_.source.epoch; }
  int64_t begins_at() const override { return begins_at_; }
  bool owned() const override { return !closed_ && !lost_ && setup_.is_held(); }
  absl::Status UpdateCheckpoint(const Event& event) override;

  PartitionSource& source() { return source_; }
  bool closing() const { return closing_; }
  // Where the group would go on if this member died now; 0: that is not known yet.
  int64_t goes_on_at() const { return saved_ > 0 ? saved_.load() : begins_at_; }

  // What the processor's mutex guards.
  struct State {
    bool open = false;
    bool initialized = false;
    bool fetching = false;                    // a fetcher has it
    bool handling = false;                    // a handler thread has it
    CloseReason reason = CloseReason::kLost;  // while closing
    std::deque<Event> events = {};            // read ahead
    size_t bytes = 0;                         // of these
    size_t largest = 0;                       // event of the last read that had some
    int idle_reads = 0;                       // in a row
    int fetch_failures = 0;                   // in a row
    int attempts = 0;                         // of the first event
    absl::Duration fetch_at;                  // not before, after a failure
    absl::Duration handle_at;                 // not before, after a failure
    absl::Duration look_at;                   // for a replay
    absl::Duration idle_since;                // the last call of OnEvent
  };
  State state;

 private:
  friend class EventProcessor;

  const Setup setup_;
  PartitionSource source_;
  int64_t begins_at_ = 0;           // before it is open
  std::atomic<int64_t> saved_ = 0;  // the last checkpoint; 0: none yet
  std::atomic<bool> closing_ = false;
  std::atomic<bool> lost_ = false;
  std::atomic<bool> closed_ = false;
};

}  // namespace muster::stream::processor
