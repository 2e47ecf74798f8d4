// SPDX-License-Identifier: Apache-2.0

// StreamLimiter: bounds the streams of one kind that hold a thread each, and ends those whose
// clients do nothing, so that no client can take all threads of a server from the others.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/server_context.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"

namespace muster::rpc {

struct StreamLimits {
  size_t max_streams = 1;  // at a time
  // A stream ends after it has waited for its client for so long. Infinite: never.
  absl::Duration max_idle = absl::InfiniteDuration();
  // When all places are taken, a new stream gets that of the stream that has waited longest, if
  // that is at least so long.
  absl::Duration yields_after = absl::InfiniteDuration();
};

// Ends a call that another thread works on with `status`; that thread's reads and writes fail from
// now on, and what it answers is lost. `context` must be alive.
void EndCall(grpc::ServerContextBase* context, const absl::Status& status);

// Thread-safe. It has one thread, from the first stream on.
class StreamLimiter {
 public:
  // Ends the stream with a status. Called under a lock: quick, and no call back.
  using End = std::function<void(const absl::Status& why)>;

  // The place of one stream, for as long as it lives. Its methods may be called on any thread.
  class Place {
   public:
    Place(StreamLimiter* limiter, End end) : limiter_(limiter), end_(std::move(end)) {}
    ~Place();
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

    // The stream waits for its client from now on: to send something, or to take what was sent.
    void Waits();
    // The client has done so.
    void Goes();
    // The client may be waiting for what has just been done: a wait begins anew, if there is one.
    void Stir();

   private:
    friend class StreamLimiter;

    StreamLimiter* const limiter_;  // not owned
    const End end_;
    // All guarded by the limiter's lock.
    std::optional<absl::Duration> waits_since_;  // monotonic
    bool ended_ = false;                         // its place is free
  };

  // `what` names the streams in errors: "uploads". `clock` is not owned.
  StreamLimiter(std::string what, StreamLimits limits, base::Clock* clock);
  ~StreamLimiter();  // no Place is left
  StreamLimiter(const StreamLimiter&) = delete;
  StreamLimiter& operator=(const StreamLimiter&) = delete;

  // Unavailable: all places are taken, and none yields.
  absl::StatusOr<std::unique_ptr<Place>> Admit(End end) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mu_);
  // Ends the streams that have waited too long, and answers when to look again.
  absl::Duration EndIdleLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndLocked(Place* place, const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The stream that has waited longest; null: none waits.
  Place* LongestLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::string what_;
  const StreamLimits limits_;
  base::Clock* const clock_;  // not owned

  base::Mutex mu_;
  base::CondVar changed_;
  std::set<Place*> places_ ABSL_GUARDED_BY(mu_);  // also of streams that were ended
  size_t taken_ ABSL_GUARDED_BY(mu_) = 0;         // of streams that were not
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::rpc
