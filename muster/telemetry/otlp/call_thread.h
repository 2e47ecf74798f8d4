// SPDX-License-Identifier: Apache-2.0

// CallThread: makes calls that may hang, one at a time, on a thread that can be left behind.
//
//   Run(call) ─► thread: call() ─► its answer
//       └─ Close(), and the patience is over ─► no answer; the thread ends when the call does
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "absl/time/time.h"
#include "muster/base/clock.h"

namespace muster::telemetry {

// From the end of an export on, for the call under way and the last one: well within what a service
// has after its grace.
inline constexpr absl::Duration kCallPatienceAtEnd = absl::Seconds(3);

// Run is for one thread, Close for any.
class CallThread {
 public:
  // `clock` is not owned and outlives this.
  explicit CallThread(base::Clock* clock);
  // Does not wait for a call that was given up.
  ~CallThread();
  CallThread(const CallThread&) = delete;
  CallThread& operator=(const CallThread&) = delete;

  // Makes the call and waits for its answer; nullopt: it was given up, or an earlier one was. What
  // the call uses, it owns, for it may outlive this.
  std::optional<bool> Run(std::function<bool()> call);

  // From now on, calls together have `patience`. The first time counts.
  void Close(absl::Duration patience);

 private:
  struct State;
  static void Work(const std::shared_ptr<State>& state);

  base::Clock* const clock_;            // not owned
  const std::shared_ptr<State> state_;  // shared with the thread
};

}  // namespace muster::telemetry
