// SPDX-License-Identifier: Apache-2.0
#include "muster/listener/key_dispatcher.h"

#include <utility>

#include "muster/base/check.h"

namespace muster::listener {

bool KeyDispatcher::IsReady(const Key& key, absl::Duration now) {
  return !key.running.has_value() && !key.waiting.empty() && key.not_before <= now;
}

void KeyDispatcher::NoteHead(int partition, const std::string& name, const Key& key) {
  if (key.running.has_value() || key.waiting.empty()) return;
  if (key.not_before == -absl::InfiniteDuration()) {
    partitions_[partition].ready.push_back(name);
  } else {
    later_.emplace(key.not_before, std::pair(partition, name));
  }
}

bool KeyDispatcher::Add(HeldMessage message) {
  const int of = message.lease->partition;
  Partition& partition = partitions_[of];
  if (!partition.positions.insert(message.position).second) return false;
  partition.bytes += message.lease->message.body.size();
  const std::string name = message.key;
  Key& key = partition.keys[name];
  key.waiting.push_back(std::move(message));
  if (key.waiting.size() == 1) NoteHead(of, name, key);
  return true;
}

void KeyDispatcher::Promote(absl::Duration now) {
  while (!later_.empty() && later_.begin()->first <= now) {
    auto [of, name] = std::move(later_.begin()->second);
    later_.erase(later_.begin());
    const auto partition = partitions_.find(of);
    if (partition == partitions_.end()) continue;
    const auto key = partition->second.keys.find(name);
    if (key == partition->second.keys.end() || !IsReady(key->second, now)) continue;
    key->second.not_before = -absl::InfiniteDuration();
    partition->second.ready.push_back(std::move(name));
  }
}

std::vector<HeldMessage> KeyDispatcher::TakeFrom(Partition* partition, absl::Duration now,
                                                 size_t max) {
  std::vector<HeldMessage> taken;
  while (taken.size() < max && !partition->ready.empty()) {
    const std::string name = std::move(partition->ready.front());
    partition->ready.pop_front();
    const auto found = partition->keys.find(name);
    if (found == partition->keys.end() || !IsReady(found->second, now)) continue;
    Key& key = found->second;
    key.running = std::move(key.waiting.front());
    key.waiting.pop_front();
    ++partition->running;
    taken.push_back(*key.running);
  }
  return taken;
}

std::vector<HeldMessage> KeyDispatcher::Take(absl::Duration now, size_t max) {
  Promote(now);
  // Partitions take turns.
  auto at = partitions_.lower_bound(next_);
  for (size_t looked = 0; looked < partitions_.size(); ++looked, ++at) {
    if (at == partitions_.end()) at = partitions_.begin();
    std::vector<HeldMessage> taken = TakeFrom(&at->second, now, max);
    if (taken.empty()) continue;
    next_ = at->first + 1;
    return taken;
  }
  return {};
}

size_t KeyDispatcher::CountReady(absl::Duration now) {
  Promote(now);
  size_t ready = 0;
  for (const auto& [of, partition] : partitions_) ready += partition.ready.size();
  return ready;
}

absl::Duration KeyDispatcher::NextAt() const {
  return later_.empty() ? absl::InfiniteDuration() : later_.begin()->first;
}

void KeyDispatcher::Drop(Partition* partition, const HeldMessage& message) {
  partition->positions.erase(message.position);
  partition->bytes -= message.lease->message.body.size();
}

void KeyDispatcher::Settled(int of, const std::string& name) {
  Partition& partition = partitions_[of];
  const auto found = partition.keys.find(name);
  MUSTER_CHECK(found != partition.keys.end() && found->second.running.has_value(), "partition ", of,
               ": a settled key has no message that runs");
  Key& key = found->second;
  Drop(&partition, *key.running);
  --partition.running;
  key.running.reset();
  if (key.waiting.empty()) {
    partition.keys.erase(found);
  } else {
    NoteHead(of, name, key);
  }
}

void KeyDispatcher::Keep(HeldMessage again, absl::Duration at) {
  const int of = again.lease->partition;
  Partition& partition = partitions_[of];
  const std::string name = again.key;
  const auto found = partition.keys.find(name);
  MUSTER_CHECK(found != partition.keys.end() && found->second.running.has_value(), "partition ", of,
               ": a kept key has no message that runs");
  Key& key = found->second;
  --partition.running;
  key.running.reset();
  key.waiting.push_front(std::move(again));
  key.not_before = at;
  NoteHead(of, name, key);
}

std::vector<HeldMessage> KeyDispatcher::TakeBehind(int of, const std::string& name) {
  std::vector<HeldMessage> behind;
  const auto partition = partitions_.find(of);
  if (partition == partitions_.end()) return behind;
  const auto key = partition->second.keys.find(name);
  if (key == partition->second.keys.end()) return behind;
  for (HeldMessage& message : key->second.waiting) {
    Drop(&partition->second, message);
    behind.push_back(std::move(message));
  }
  key->second.waiting.clear();
  if (!key->second.running.has_value()) partition->second.keys.erase(key);
  return behind;
}

std::vector<HeldMessage> KeyDispatcher::TakeWaiting(int of) {
  std::vector<HeldMessage> waiting;
  const auto found = partitions_.find(of);
  if (found == partitions_.end()) return waiting;
  Partition& partition = found->second;
  for (auto& [name, key] : partition.keys) {
    for (HeldMessage& message : key.waiting) {
      Drop(&partition, message);
      waiting.push_back(std::move(message));
    }
    key.waiting.clear();
  }
  absl::erase_if(partition.keys, [](const auto& entry) { return !entry.second.running; });
  partition.ready.clear();
  return waiting;
}

std::vector<HeldMessage> KeyDispatcher::Forget(int of) {
  std::vector<HeldMessage> waiting = TakeWaiting(of);
  partitions_.erase(of);
  return waiting;
}

size_t KeyDispatcher::held(int of) const {
  const auto found = partitions_.find(of);
  return found == partitions_.end() ? 0 : found->second.positions.size();
}

size_t KeyDispatcher::running(int of) const {
  const auto found = partitions_.find(of);
  return found == partitions_.end() ? 0 : found->second.running;
}

size_t KeyDispatcher::held_bytes(int of) const {
  const auto found = partitions_.find(of);
  return found == partitions_.end() ? 0 : found->second.bytes;
}

}  // namespace muster::listener
