// SPDX-License-Identifier: Apache-2.0
#include "muster/bus/roster.h"

#include <algorithm>
#include <iterator>

#include "muster/base/check.h"
#include "muster/bus/heartbeat_bus.h"

namespace muster::bus {
namespace {

// Above any real number, and sums of two of them fit.
constexpr int64_t kMaxHeldBackItems = int64_t{1} << 50;

bool IsSound(const v1::InstanceInfo& info) {
  return v1::Role_IsValid(info.role()) && info.role() != v1::ROLE_UNSPECIFIED &&
         !info.instance().empty() && info.instance().size() <= kMaxInfoBytes &&
         info.address().size() <= kMaxInfoBytes && info.version().size() <= kMaxInfoBytes;
}

}  // namespace

Roster::Roster(base::Clock* clock, RosterOptions options) : clock_(clock), options_(options) {}

void Roster::OnHeartbeat(const v1::Heartbeat& heartbeat) {
  if (Take(heartbeat)) return;
  base::MutexLock lock(&mu_);
  ++ignored_;
}

bool Roster::Take(const v1::Heartbeat& heartbeat) {
  const v1::InstanceInfo& info = heartbeat.instance();
  if (!IsSound(info) || heartbeat.ByteSizeLong() > kMaxHeartbeatBytes ||
      heartbeat.SpaceUsedLong() > kMaxHeartbeatSpace) {
    return false;
  }
  const absl::Duration now = clock_->Monotonic();
  base::MutexLock lock(&mu_);
  ForgetLocked(now);
  const Key key(info.role(), info.instance());
  const auto known = instances_.find(key);
  if (known == instances_.end()) {
    if (!MakeRoomLocked(now)) return false;
  } else if (heartbeat.sequence() <= known->second.heartbeat.sequence()) {
    return false;
  }
  instances_[key] = {heartbeat, clock_->Now(), now};
  MUSTER_CHECK(instances_.size() <= options_.max_instances, "instances ", instances_.size(),
               ", at most ", options_.max_instances);
  return true;
}

std::vector<RosterEntry> Roster::List(std::optional<v1::Role> role) {
  const absl::Duration now = clock_->Monotonic();
  std::vector<RosterEntry> entries;
  base::MutexLock lock(&mu_);
  ForgetLocked(now);
  for (const auto& [key, instance] : instances_) {
    if (role.has_value() && key.first != *role) continue;
    entries.push_back({instance.heartbeat, instance.heard, IsLeaving(instance, now)});
  }
  return entries;
}

Silence Roster::SilentFor(absl::Duration limit) {
  const absl::Duration now = clock_->Monotonic();
  Silence silence;
  base::MutexLock lock(&mu_);
  ForgetLocked(now);
  for (const auto& [key, instance] : instances_) {
    const absl::Duration lasts = now - instance.heard_monotonic;
    if (lasts >= limit) {
      silence.instances.push_back({key.second, lasts});
    } else {
      silence.next = std::min(silence.next, limit - lasts);
    }
  }
  return silence;
}

int64_t Roster::ignored() const {
  base::MutexLock lock(&mu_);
  return ignored_;
}

// The last missing heartbeat counts as missing when it is half an interval late.
bool Roster::IsLeaving(const Instance& instance, absl::Duration now) const {
  return instance.heartbeat.leaving() ||
         now - instance.heard_monotonic >= (kMissingHeartbeats + 0.5) * options_.interval;
}

void Roster::ForgetLocked(absl::Duration now) {
  for (auto it = instances_.begin(); it != instances_.end();) {
    const bool is_forgotten = now - it->second.heard_monotonic >= options_.forget_after;
    it = is_forgotten ? instances_.erase(it) : std::next(it);
  }
}

bool Roster::MakeRoomLocked(absl::Duration now) {
  if (instances_.size() < options_.max_instances) return true;
  auto silent = instances_.end();
  for (auto it = instances_.begin(); it != instances_.end(); ++it) {
    if (!IsLeaving(it->second, now)) continue;
    const bool is_longer =
        silent == instances_.end() || it->second.heard_monotonic < silent->second.heard_monotonic;
    if (is_longer) silent = it;
  }
  if (silent == instances_.end()) return false;
  instances_.erase(silent);
  return true;
}

int64_t HeldBackItems(const std::vector<RosterEntry>& entries,
                      const std::function<bool(absl::string_view queue)>& matches) {
  int64_t items = 0;
  for (const RosterEntry& entry : entries) {
    if (entry.leaving) continue;
    for (const v1::HeldBack& held_back : entry.heartbeat.held_back()) {
      if (!matches(held_back.queue())) continue;
      items = std::min(kMaxHeldBackItems,
                       items + std::clamp<int64_t>(held_back.items(), 0, kMaxHeldBackItems));
    }
  }
  return items;
}

}  // namespace muster::bus
