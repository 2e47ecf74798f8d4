// What this process uses of its machine.
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

// What the system does not tell is zero.
ProcessUsage MeasureProcess();

// HeartbeatSender: says every few seconds that this role instance lives, and at the end that it
// leaves.

struct HeartbeatOptions {
  absl::Duration interval = kHeartbeatInterval;
  std::function<ProcessUsage()> measure = MeasureProcess;
};

// Thread-safe.
class HeartbeatSender {
 public:
  // Adds what only the role knows: the jobs' loads over `window`, and the handlers that the
  // instance can run. On the sender's thread, and on the one that calls Leave; one call at a time.
  using Complete = std::function<void(absl::Duration window, v1::Heartbeat* heartbeat)>;

  // `complete` may be empty. `roster`, which may be null, hears each heartbeat first, so that an
  // instance knows itself whatever the bus does. Nothing of what is pointed to is owned.
  HeartbeatSender(v1::InstanceInfo instance, Complete complete, HeartbeatBus* bus, Roster* roster,
                  base::Clock* clock, HeartbeatOptions options = HeartbeatOptions());
  // Leaves.
  ~HeartbeatSender();
  HeartbeatSender(const HeartbeatSender&) = delete;
  HeartbeatSender& operator=(const HeartbeatSender&) = delete;

  // Sends the first heartbeat and one every interval from then on, on a thread of its own. Once.
  // What the bus does not take is lost; that it does not is logged once until it does again.
  void Start();

  // Somebody new is there, who knows nobody: sends the next heartbeat soon, at the most one every
  // kGreetInterval. Never blocks.
  void Greet();

  // Sends a last heartbeat, which says that the instance leaves, and none after it. Again, or
  // before Start, it does nothing.
  void Leave();

 private:
  void Run();
  // False: the sender shall stop. True: the next heartbeat is due, by `regular` or by a greeting.
  bool AwaitNext(absl::Duration regular);
  void Send(bool leaving);
  // Jobs that make it longer than a heartbeat may be are left out.
  static void Shorten(v1::Heartbeat* heartbeat);
  void Note(const absl::Status& published);

  const v1::InstanceInfo instance_;
  const Complete complete_;
  HeartbeatBus* const bus_;   // not owned
  Roster* const roster_;      // not owned; may be null
  base::Clock* const clock_;  // not owned
  const HeartbeatOptions options_;

  // Of the last heartbeat. Used by one thread after the other.
  uint64_t sequence_ = 0;
  absl::Duration sent_at_;
  absl::Duration cpu_;
  bool bus_fails_ = false;

  base::Mutex mu_;
  base::CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  bool greet_ ABSL_GUARDED_BY(mu_) = false;
  base::Mutex thread_mu_;  // held while leaving, so that whoever comes second waits
  std::thread thread_ ABSL_GUARDED_BY(thread_mu_);
};

}  // namespace muster::bus
