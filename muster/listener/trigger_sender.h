// TriggerSender: tells other listeners, by multicast, that work was put (req. 41, 45).
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

  // `wanted`: as in the event.
  void Send(const queue::QueueId& queue, int64_t messages, const std::string& wanted = "");

 private:
  bus::TriggerBus* const bus_;  // not owned
  const std::string instance_;
  CounterSet* const counters_;  // not owned
};

// A burst of puts into one queue, announced cheaply: at its first put, at its end, and now and then
// between, so that a reader that is quicker than the writer does not sleep through it.
// Not thread-safe: the settler's.
class BurstAnnouncer {
 public:
  BurstAnnouncer(queue::QueueId queue, TriggerSender* sender, base::Clock* clock);

  // `messages` were put.
  void OnPut(int64_t messages);
  // Nothing more to put for now.
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

// Handover: brings messages that this listener cannot work on to those who can: their code has
// another version, say, or reads what is too new for this one.
//
//   settled with `wanted` ─► put back, away for a while ─► visible again, and announced ─► whoever
//   may have what is wanted looks; who has put back such messages itself, lately, does not
//
// A queue gives a message to whoever asks first, and cannot know whom it suits. Without a word, all
// who are idle look at times of their own, and each that does not fit hides the message from those
// who do. A message can go from hand to hand like this for minutes. So who puts it back stays away
// when it is visible again, and tells the others. Each that does not fit either takes it once,
// learns that, and stays away next time; those who fit are left. The time that a message is away
// grows (DelayForOthers), so that it does not keep those busy who have other work, if nobody fits.
//
// Best effort, like every trigger: the safety checks of all listeners look for such messages, too.
// So does who has come to fit meanwhile.

// Thread-safe.
class Handover {
 public:
  // So long after it put something back, or announced it, a listener does not come for the like.
  static constexpr absl::Duration kStaysAway = absl::Minutes(1);
  // Of what is remembered: kinds of messages that do not fit, and announcements to be made. A job
  // has few versions at a time; what is forgotten is looked at in vain once more, and what is not
  // announced is found by a safety check.
  static constexpr size_t kMaxWanted = 256;
  static constexpr size_t kMaxAnnouncements = 1024;

  // Neither pointer is owned.
  Handover(TriggerSender* triggers, base::Clock* clock) : triggers_(triggers), clock_(clock) {}

  // A message of `queue` was put back, and is visible again in `delay`; AnnounceDue is to be called
  // then.
  void OnPutBack(const queue::QueueId& queue, const std::string& wanted, absl::Duration delay);

  // Announces what is visible by now: what became so together with one trigger.
  void AnnounceDue();

  // Whether messages for which `wanted` is needed are for others than this listener, as far as it
  // knows. Nothing wanted: no.
  bool IsForOthers(absl::string_view wanted) const;

 private:
  // By when it is visible; account and name of the queue, and what is wanted.
  using Announcement = std::tuple<absl::Duration, std::string, std::string, std::string>;

  void RememberLocked(const std::string& wanted, absl::Duration now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::vector<std::pair<Announcement, int64_t>> TakeDue();

  TriggerSender* const triggers_;  // not owned
  base::Clock* const clock_;       // not owned

  mutable base::Mutex mu_;
  std::map<Announcement, int64_t> announcements_ ABSL_GUARDED_BY(mu_);  // … of how many messages
  // When this listener comes for them again, by Clock::Monotonic().
  absl::flat_hash_map<std::string, absl::Duration> away_until_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::listener
