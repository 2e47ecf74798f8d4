// SPDX-License-Identifier: Apache-2.0

// ActivityStreams: the StreamIsActive calls of an agent. They hold no threads.
//
//   TargetLoop ──Update──► a stream of this target ──► KEDA
//   the leader's stream ─► a relay ──────────────────► KEDA
//
// A stream tells whether its target shall have replicas: as soon as that is known, and when it
// changes. A client that reads slowly misses changes in between, and gets the last one. While there
// shall be replicas it says so again every kActivityRepeat: KEDA drops a "true" that comes before
// it has made the HPA.
//
// A stream ends when its client leaves, when the agent drains, when the agent no longer decides for
// the target, and, a relay, when the leader's stream ends. A client that shall ask again soon is
// answered OK, whether it was told something or not: KEDA then opens the next stream after two
// seconds, whereas after each error it waits twice as long as after the one before. Errors are for
// what another try does not mend.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "externalscaler/externalscaler.grpc.pb.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/server_callback.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "services/scaling-agent/limits.h"

namespace muster::scaling_agent {

// Metadata of a call that one agent passes on to another one, which does not pass it on again.
inline constexpr char kPassedOn[] = "muster-passed-on";

// Thread-safe.
class ActivityStreams {
 public:
  // Owns itself until its call is over; gRPC's, once it is returned to it.
  using Reactor = grpc::ServerWriteReactor<externalscaler::IsActiveResponse>;

  // `clock` is not owned.
  explicit ActivityStreams(base::Clock* clock, size_t most = kMaxActivityStreams)
      : clock_(clock), most_(most) {}
  // Drains, and waits until all calls are over; the server has been told to stop.
  ~ActivityStreams();
  ActivityStreams(const ActivityStreams&) = delete;
  ActivityStreams& operator=(const ActivityStreams&) = delete;

  // What the agent wants for a target, with each of its decisions: at least every second. nullopt:
  // it decides nothing for it, or no more; that ends the streams of the target.
  void Update(const std::string& target, std::optional<int> desired) ABSL_LOCKS_EXCLUDED(mu_);

  // A stream of what Update says.
  Reactor* Follow(const std::string& target) ABSL_LOCKS_EXCLUDED(mu_);
  // A stream of what `leader` says.
  Reactor* Relay(const std::shared_ptr<externalscaler::ExternalScaler::Stub>& leader,
                 const externalscaler::ScaledObjectRef& request) ABSL_LOCKS_EXCLUDED(mu_);
  // A stream that tells nothing and ends with this error; with OK if it is Unavailable.
  static Reactor* Refuse(const absl::Status& why);

  // Ends all streams, and refuses new ones. Does not wait until they are over.
  void Drain() ABSL_LOCKS_EXCLUDED(mu_);

  // Streams that are not over.
  size_t open() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  class Stream;
  class Upstream;
  enum class Action { kNone, kWrite, kFinish };
  using Steps = std::vector<std::pair<Stream*, Action>>;

  // Unavailable: the agent drains. ResourceExhausted: there is no place.
  absl::Status Admit(Stream* stream) ABSL_LOCKS_EXCLUDED(mu_);
  void Tell(Stream* stream, bool active) ABSL_LOCKS_EXCLUDED(mu_);
  void EndRelay(Stream* stream, const absl::Status& why) ABSL_LOCKS_EXCLUDED(mu_);
  void EndLocked(Stream* stream, const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The next step of the stream. The caller must do it, after releasing the lock: until then the
  // stream stays alive. gRPC may call back while it is told of a step.
  Action NextLocked(Stream* stream) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  static void Do(const Steps& steps);

  base::Clock* const clock_;  // not owned
  const size_t most_;
  mutable base::Mutex mu_;
  base::CondVar over_;
  bool draining_ ABSL_GUARDED_BY(mu_) = false;
  std::map<std::string, bool> active_ ABSL_GUARDED_BY(mu_);  // by target; no more than the rules
  std::set<Stream*> streams_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::scaling_agent
