// SPDX-License-Identifier: Apache-2.0

// ObjectWatch: reports to a listener all objects that a selector chooses: a list first, then each
// change as it happens, from exactly where the list or a lost connection ended.
//
//   list ──► watch from its version ──► ended, broken: watch again from the last version seen
//    ▲                 │
//    └── 410 Gone ─────┘   the server has forgotten that version: after a pause, which grows
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "muster/base/clock.h"
#include "muster/kubernetes/client.h"
#include "nlohmann/json_fwd.hpp"

namespace muster::kubernetes {

// Called by one thread, in the order of the changes. An object may be reported twice.
class WatchListener {
 public:
  virtual ~WatchListener() = default;
  // `objects` are all there are; objects that were reported before and are not among them are gone.
  virtual void OnAll(const std::vector<nlohmann::json>& objects) = 0;
  virtual void OnChanged(const nlohmann::json& object) = 0;
  virtual void OnGone(const nlohmann::json& object) = 0;
  // Nothing has changed up to now.
  virtual void OnCurrent() = 0;
  // Earlier reports may be out of date, until the next call of another of these.
  virtual void OnTrouble(const absl::Status& why) = 0;
};

// Not thread-safe.
class ObjectWatch {
 public:
  // None of these is owned. `address` has no name.
  ObjectWatch(Client* client, Address address, std::string selector, WatchListener* listener,
              base::Clock* clock);

  // Returns as soon as `stop` is requested. On any error it reports the trouble, waits for a while,
  // and tries again.
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

  std::string version_;    // all up to here was reported; empty: list first
  bool received_ = false;  // an event of the present watch
};

}  // namespace muster::kubernetes
