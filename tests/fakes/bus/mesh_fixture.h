// SPDX-License-Identifier: Apache-2.0

// Heartbeats and roster entries for tests of the mesh.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "muster/bus/roster.h"
#include "muster/v1/heartbeat.pb.h"

namespace muster::bus {

inline v1::InstanceInfo Instance(v1::Role role, absl::string_view name) {
  v1::InstanceInfo info;
  info.set_role(role);
  info.set_instance(std::string(name));
  return info;
}

inline v1::Heartbeat Heartbeat(v1::Role role, absl::string_view name, uint64_t sequence) {
  v1::Heartbeat heartbeat;
  *heartbeat.mutable_instance() = Instance(role, name);
  heartbeat.set_sequence(sequence);
  return heartbeat;
}

// Returns "name" for each entry, and "name leaving" for an instance that leaves.
inline std::vector<std::string> Names(const std::vector<RosterEntry>& entries) {
  std::vector<std::string> names;
  for (const RosterEntry& entry : entries) {
    names.push_back(
        absl::StrCat(entry.heartbeat.instance().instance(), entry.leaving ? " leaving" : ""));
  }
  return names;
}

}  // namespace muster::bus
