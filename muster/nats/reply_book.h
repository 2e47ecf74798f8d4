// PendingReplies: who waits for which reply. Each request is sent with a reply subject of its own,
// and one subscription hears them all:
//
//   <prefix>.<call>.<place>       the place of the request among those of its call
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/nats/message.h"

namespace muster::nats {

// Thread-safe.
class PendingReplies {
 public:
  // `prefix` is nobody else's. `clock` is not owned.
  PendingReplies(std::string prefix, base::Clock* clock)
      : prefix_(std::move(prefix)), clock_(clock) {}

  // One caller's requests; replies that come after it are dropped. Not thread-safe.
  class Call {
   public:
    explicit Call(PendingReplies* pending);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    std::string ReplySubject(size_t place) const;
    // The next reply to any of the requests, with its place; nullopt at `deadline` on the clock.
    std::optional<std::pair<size_t, Incoming>> Await(absl::Duration deadline);

   private:
    friend class PendingReplies;

    PendingReplies* const pending_;  // not owned
    uint64_t id_ = 0;
    base::CondVar arrival_;
    std::deque<std::pair<size_t, Incoming>> replies_;  // guarded by the pending's mu_
  };

  // What every reply subject matches.
  std::string Subjects() const { return prefix_ + ".*.*"; }
  void Deliver(Incoming reply);

 private:
  const std::string prefix_;
  base::Clock* const clock_;  // not owned
  base::Mutex mu_;
  uint64_t last_call_ ABSL_GUARDED_BY(mu_) = 0;
  absl::flat_hash_map<uint64_t, Call*> calls_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::nats
