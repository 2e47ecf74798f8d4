// ObjectWatch: keeps somebody told of all objects that a selector chooses: a list first, then each
// change as it happens, from just where the list or a lost connection ended.
//
//   list ──► watch from its version ──► ended, broken: watch again from the last version heard
//    ▲                 │
//    └── 410 Gone ─────┘   the server has forgotten that version
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/kubernetes/client.h"
#include "nlohmann/json_fwd.hpp"

namespace muster::kubernetes {

// Called by one thread, in the order of what happened. An object may be told of twice.
class WatchListener {
 public:
  virtual ~WatchListener() = default;
  // This is all there is; what was told before and is not in it is gone.
  virtual void OnAll(const std::vector<nlohmann::json>& objects) = 0;
  virtual void OnChanged(const nlohmann::json& object) = 0;
  virtual void OnGone(const nlohmann::json& object) = 0;
  // Nothing has changed up to now.
  virtual void OnCurrent() = 0;
  // What was told may be out of date, until the next call of another of these.
  virtual void OnTrouble(const absl::Status& why) = 0;
};

// Not thread-safe.
class ObjectWatch {
 public:
  // None of these is owned. `address` has no name.
  ObjectWatch(Client* client, Address address, std::string selector, WatchListener* listener,
              base::Clock* clock);

  // Returns when `stop` is requested, at once. Whatever goes wrong it tells, waits for a while, and
  // tries again.
  void Run(const std::stop_token& stop);

 private:
  absl::Status List(const std::stop_token& stop);
  absl::Status Follow(const std::stop_token& stop);
  absl::Status OnEvent(const nlohmann::json& event);

  Client* const client_;  // not owned
  const Address address_;
  const std::string selector_;
  WatchListener* const listener_;  // not owned
  base::Clock* const clock_;       // not owned

  std::string version_;    // heard of all up to here; empty: list first
  bool received_ = false;  // something since the last wait
};

}  // namespace muster::kubernetes
