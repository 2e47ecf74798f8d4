// SPDX-License-Identifier: Apache-2.0

// PodCache, and the bounds of the Kubernetes actuator, each with its reason.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/kubernetes/client.h"
#include "muster/kubernetes/object_watch.h"
#include "muster/kubernetes/workload.h"

namespace muster::actuator::kubernetes {

// The time for an order with all its requests; after it the agent's decision is out of date.
inline constexpr absl::Duration kOrderLimit = absl::Seconds(30);

// Pods that one order marks to go first: each is a request of some milliseconds. Kubernetes chooses
// the rest.
inline constexpr int kMaxMarks = 200;

// The server sends a bookmark about each minute: after longer silence the connection is dead.
inline constexpr absl::Duration kMaxSilence = absl::Seconds(90);

// PodCache: the pods of one target, kept up to date by a watch, so that looking at them each
// second asks nothing of the API server.

// Thread-safe. Has its own thread, which ends at once when the cache is destroyed.
class PodCache final : private muster::kubernetes::WatchListener {
 public:
  // `client` and `clock` are not owned.
  PodCache(muster::kubernetes::Client* client, std::string name_space, std::string selector,
           base::Clock* clock);

  const std::string& name_space() const { return name_space_; }
  const std::string& selector() const { return selector_; }

  // nullopt: the watch is interrupted, or has been silent for longer than kMaxSilence.
  std::optional<std::vector<muster::kubernetes::Pod>> Current() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void OnAll(const std::vector<nlohmann::json>& objects) override ABSL_LOCKS_EXCLUDED(mu_);
  void OnChanged(const nlohmann::json& object) override ABSL_LOCKS_EXCLUDED(mu_);
  void OnGone(const nlohmann::json& object) override ABSL_LOCKS_EXCLUDED(mu_);
  void OnCurrent() override ABSL_LOCKS_EXCLUDED(mu_);
  void OnTrouble(const absl::Status& why) override ABSL_LOCKS_EXCLUDED(mu_);

  void TouchLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::string name_space_;
  const std::string selector_;
  base::Clock* const clock_;  // not owned
  muster::kubernetes::ObjectWatch watch_;

  mutable base::Mutex mu_;
  std::map<std::string, muster::kubernetes::Pod> pods_ ABSL_GUARDED_BY(mu_);
  bool is_current_ ABSL_GUARDED_BY(mu_) = false;
  bool has_told_ ABSL_GUARDED_BY(mu_) = false;  // the present interruption was logged
  absl::Duration last_contact_ ABSL_GUARDED_BY(mu_);

  std::jthread thread_;  // last, because it uses all members above
};

}  // namespace muster::actuator::kubernetes
