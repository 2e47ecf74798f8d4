// SPDX-License-Identifier: Apache-2.0

// HeartbeatSender: announces every few seconds that this role instance lives, and at the end that
// it leaves.
#pragma once

#include <cstdint>
#include <functional>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/bus/heartbeat_bus.h"
#include "muster/bus/roster.h"
#include "muster/v1/heartbeat.pb.h"

namespace muster::bus {

struct ProcessUsage {
  absl::Duration cpu;  // user and system time since the process began
  uint64_t resident_bytes = 0;
};

// Returns what this process uses of its machine. A figure that the system does not report is zero.
ProcessUsage MeasureProcess();

// The options of HeartbeatSender.

struct HeartbeatOptions {
  absl::Duration interval = kHeartbeatInterval;
  std::function<ProcessUsage()> measure = MeasureProcess;
};

// Thread-safe.
class HeartbeatSender {
 public:
  // Adds the facts that only the role knows: the loads of jobs over `window`, and the handlers that
  // the instance can run. Called on the thread of the sender, and on the thread that calls Leave;
  // one call at a time.
  using Complete = std::function<void(absl::Duration window, v1::Heartbeat* heartbeat)>;

  // `complete` may be empty. `roster`, which may be null, receives each heartbeat first, so that an
  // instance knows itself even when the bus fails. No pointer is owned.
  HeartbeatSender(v1::InstanceInfo instance, Complete complete, HeartbeatBus* bus, Roster* roster,
                  base::Clock* clock, HeartbeatOptions options = HeartbeatOptions());
  // Calls Leave.
  ~HeartbeatSender();
  HeartbeatSender(const HeartbeatSender&) = delete;
  HeartbeatSender& operator=(const HeartbeatSender&) = delete;

  // Starts a thread that sends a heartbeat at once and one every interval. Call it once. A
  // heartbeat that the bus refuses is lost; the sender logs the first failure of a series.
  void Start() ABSL_LOCKS_EXCLUDED(thread_mu_);

  // A new instance is there, which knows no other: sends the next heartbeat soon, but at most one
  // every kGreetInterval. Never blocks.
  void Greet() ABSL_LOCKS_EXCLUDED(mu_);

  // Sends a last heartbeat, which says that the instance leaves, and none after it. Does nothing on
  // a second call or before Start.
  void Leave() ABSL_LOCKS_EXCLUDED(mu_, thread_mu_);

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mu_);
  // Returns false when the sender must stop. True: the next heartbeat is due, at `regular` or for a
  // greeting.
  bool AwaitNext(absl::Duration regular) ABSL_LOCKS_EXCLUDED(mu_);
  void Send(bool leaving) ABSL_LOCKS_EXCLUDED(mu_);
  // Removes jobs from a heartbeat that is too long.
  static void Shorten(v1::Heartbeat* heartbeat);
  void Note(const absl::Status& published) ABSL_LOCKS_EXCLUDED(mu_);

  const v1::InstanceInfo instance_;
  const Complete complete_;
  HeartbeatBus* const bus_;   // not owned
  Roster* const roster_;      // not owned; may be null
  base::Clock* const clock_;  // not owned
  const HeartbeatOptions options_;

  // The values of the last heartbeat. Used by one thread after the other.
  uint64_t sequence_ = 0;
  absl::Duration sent_at_;
  absl::Duration cpu_;
  bool bus_fails_ = false;

  base::Mutex mu_;
  base::CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  bool greet_ ABSL_GUARDED_BY(mu_) = false;
  base::Mutex thread_mu_;  // held while leaving, so that a second caller waits
  std::thread thread_ ABSL_GUARDED_BY(thread_mu_);
};

}  // namespace muster::bus
