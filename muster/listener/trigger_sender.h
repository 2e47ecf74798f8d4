// SPDX-License-Identifier: Apache-2.0

// TriggerSender: announces to other listeners, by multicast, that work was put; and
// its two users, BurstAnnouncer and Handover.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/bus/trigger_bus.h"
#include "muster/listener/metrics.h"
#include "muster/queue/queue_store.h"

namespace muster::listener {

// Thread-safe. Best effort: a trigger that cannot be sent costs latency only, and the listeners'
// safety checks make up for it.
class TriggerSender {
 public:
  // `bus` may be null: then nothing is sent. Neither pointer is owned.
  TriggerSender(bus::TriggerBus* bus, std::string instance, CounterSet* counters);

  // `wanted`: as in CloudQueueWorkDetectedTriggerEvent.
  void Send(const queue::QueueId& queue, int64_t messages, const std::string& wanted = "");

 private:
  bus::TriggerBus* const bus_;  // not owned
  const std::string instance_;
  CounterSet* const counters_;  // not owned
};

// Announces a burst of puts into one queue at low cost: at its first put, at its end, and now and
// then between, so that a reader that is faster than the writer does not sleep through it. Not
// thread-safe: only the thread of the settler uses it.
class BurstAnnouncer {
 public:
  BurstAnnouncer(queue::QueueId queue, TriggerSender* sender, base::Clock* clock);

  // `messages` messages were put.
  void OnPut(int64_t messages);
  // The burst has ended: there is nothing more to put for now.
  void OnIdle();

 private:
  void Announce();

  const queue::QueueId queue_;
  TriggerSender* const sender_;  // not owned
  base::Clock* const clock_;     // not owned
  bool in_burst_ = false;
  int64_t unannounced_ = 0;
  absl::Duration announced_at_ = absl::ZeroDuration();
};

// Handover: passes messages that this listener cannot work on to listeners that can. Such a message
// needs another version of the code, say, or has a format that is too new for this listener.
//
//   settled with `wanted` ─► put back, away for a while ─► visible again, and announced ─► a
//   listener that may have what is wanted looks; one that lately put such messages back does not
//
// A queue gives a message to the first listener that asks, and cannot know which listener fits.
// Without an announcement all idle listeners look at times of their own, and each that does not fit
// hides the message from those that do; a message can pass between them like this for minutes. So a
// listener that puts a message back stays away when it is visible again, and announces it to the
// others. Another listener that does not fit takes it once, learns that, and stays away next time;
// the listeners that fit remain. The time that a message is away grows (DelayForOthers), so that a
// message that fits no listener does not keep busy those that have other work.
//
// Best effort, like every trigger: the safety checks of all listeners look for such messages, too.
// In this way a listener that has come to fit meanwhile finds them.

// Thread-safe.
class Handover {
 public:
  // How long a listener stays away from similar messages after it put one back or announced it.
  static constexpr absl::Duration kStaysAway = absl::Minutes(1);
  // Limits of what is remembered: kinds of messages that do not fit, and announcements to be made.
  // A job has few versions at a time. A forgotten kind costs one more look in vain, and a safety
  // check finds a message that is not announced.
  static constexpr size_t kMaxWanted = 256;
  static constexpr size_t kMaxAnnouncements = 1024;

  // Neither pointer is owned.
  Handover(TriggerSender* triggers, base::Clock* clock) : triggers_(triggers), clock_(clock) {}

  // A message of `queue` was put back and is visible again in `delay`; the caller must call
  // AnnounceDue then.
  void OnPutBack(const queue::QueueId& queue, const std::string& wanted, absl::Duration delay)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Announces the messages that are visible by now: one trigger for messages that became visible
  // together.
  void AnnounceDue() ABSL_LOCKS_EXCLUDED(mu_);

  // Whether messages that need `wanted` are for other listeners, as far as this one knows. False
  // when `wanted` is empty.
  bool IsForOthers(absl::string_view wanted) const ABSL_LOCKS_EXCLUDED(mu_);

  // Whether this listener stays away from any messages now: it should not wait where a message
  // comes to any listener that waits.
  bool StaysAway() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // When the message is visible; account and name of the queue; and what is wanted.
  using Announcement = std::tuple<absl::Duration, std::string, std::string, std::string>;

  void RememberLocked(const std::string& wanted, absl::Duration now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::vector<std::pair<Announcement, int64_t>> TakeDue() ABSL_LOCKS_EXCLUDED(mu_);

  TriggerSender* const triggers_;  // not owned
  base::Clock* const clock_;       // not owned

  mutable base::Mutex mu_;
  std::map<Announcement, int64_t> announcements_ ABSL_GUARDED_BY(mu_);  // … of how many messages
  // By `wanted`: when this listener looks for such messages again, by Clock::Monotonic().
  absl::flat_hash_map<std::string, absl::Duration> away_until_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::listener
