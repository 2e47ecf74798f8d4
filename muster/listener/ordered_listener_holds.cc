// SPDX-License-Identifier: Apache-2.0

// OrderedListener: keys that are held behind a dead letter.
//
//   given up ─► KeyHolds::Hold ─► dead letter           later messages of the key: given back
//   redriven ─► runs ─► deleted ─► KeyHolds::Release ─► the partition is read again from its head
//   released by an operator ─────────────────────────►
//
// A held key costs this process its name and its item; what waits behind it stays in the queue.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "muster/base/status.h"
#include "muster/listener/ordered_listener.h"

namespace muster::listener {

namespace {

bool HasKey(const std::string& name) { return name.front() == 'k'; }

}  // namespace

bool OrderedListener::ReadHolds(int place, int64_t term) {
  if (holds_ == nullptr) return true;
  const auto read = holds_->Read(place, /*with_dead=*/true);
  if (!read.ok()) on_error_(base::Annotate(read.status(), "reading the held keys"));
  base::MutexLock lock(&mu_);
  Partition& partition = partitions_[static_cast<size_t>(place)];
  if (partition.term != term || partition.reading != Reading::kReclaim) return false;
  if (!read.ok()) {
    RestLocked(&partition);
    return false;
  }
  partition.holds = {};
  for (const KeyHolds::Held& held : *read) {
    partition.holds.keys["k" + held.key] = {held.item, held.is_dead, /*was_seen=*/false};
  }
  return true;
}

void OrderedListener::RereadHolds(int place, int64_t term) {
  absl::flat_hash_map<std::string, HeldFor> known;
  {
    base::MutexLock lock(&mu_);
    Holds& holds = partitions_[static_cast<size_t>(place)].holds;
    holds.reread = false;
    known = holds.keys;
  }
  if (known.empty()) return;
  const auto read = holds_->Read(place, /*with_dead=*/false);
  if (!read.ok()) return on_error_(base::Annotate(read.status(), "reading the held keys"));
  for (const KeyHolds::Held& held : *read) known.erase("k" + held.key);
  base::MutexLock lock(&mu_);
  if (partitions_[static_cast<size_t>(place)].term != term) return;
  for (const auto& [name, held] : known) LetGoLocked(place, name);
}

// Those behind it are away: only the head of the partition tells their order.
void OrderedListener::LetGoLocked(int place, const std::string& name) {
  Holds& holds = partitions_[static_cast<size_t>(place)].holds;
  if (holds.keys.erase(name) > 0 && holds.gave_back) RestartLocked(place);
}

void OrderedListener::ReleasePassed(int place, int64_t term) {
  std::vector<std::pair<std::string, std::string>> passed;
  {
    base::MutexLock lock(&mu_);
    Partition& partition = partitions_[static_cast<size_t>(place)];
    if (partition.term != term) return;
    for (const auto& [name, held] : partition.holds.keys) {
      if (held.has_passed) passed.emplace_back(name, held.item);
    }
    partition.holds.any_passed = false;
  }
  for (const auto& [name, item] : passed) {
    const absl::Status released = holds_->Release(place, name.substr(1), item);
    base::MutexLock lock(&mu_);
    Partition& partition = partitions_[static_cast<size_t>(place)];
    if (partition.term != term) return;
    if (released.ok()) {
      LetGoLocked(place, name);
      continue;
    }
    on_error_(base::Annotate(released, "letting a held key go on"));
    partition.holds.any_passed = true;
    return RestLocked(&partition);
  }
}

bool OrderedListener::Withholds(const HeldMessage& message) {
  if (holds_ == nullptr) return false;
  Holds& holds = partitions_[static_cast<size_t>(message.lease->partition)].holds;
  const auto found = holds.keys.find(message.key);
  if (found == holds.keys.end()) return false;
  if (holds_->ItemOf(message.lease->message) != found->second.item) return true;
  found->second.was_seen = true;
  return false;
}

void OrderedListener::GiveBackLocked(int place, std::vector<HeldMessage> messages) {
  Partition& partition = partitions_[static_cast<size_t>(place)];
  std::vector<Settler::Item> items;
  for (HeldMessage& message : messages) {
    if (!leases_.StartSettling(*message.lease)) continue;
    partition.holds.gave_back = true;
    ++partition.giving_back;
    Settler::Item& item = items.emplace_back();
    item.attempts = message.lease->message.attempts;
    item.lease = std::move(message.lease);
    item.verdict.action = Verdict::Action::kGiveBack;
    item.verdict.delay = kHeldAway;
    item.verdict.attempt_ended = true;  // the lease ends; no attempt was charged
    item.verdict.counter = &ListenerCounters::messages_withheld;
    item.verdict.on_settled = [this, place](const absl::Status&) {
      base::MutexLock lock(&mu_);
      if (--partitions_[static_cast<size_t>(place)].giving_back == 0) read_.NotifyAll();
    };
  }
  if (!items.empty()) settler_.Settle(std::move(items));
}

void OrderedListener::WithholdLocked(int place, std::vector<HeldMessage>* messages) {
  std::vector<HeldMessage> kept, withheld;
  for (HeldMessage& message : *messages) {
    std::vector<HeldMessage>& whose = Withholds(message) ? withheld : kept;
    whose.push_back(std::move(message));
  }
  messages->swap(kept);
  GiveBackLocked(place, std::move(withheld));
}

bool OrderedListener::IsHeldLocked(int place, const std::string& name) const {
  return partitions_[static_cast<size_t>(place)].holds.keys.contains(name);
}

// A key whose item is neither here nor a dead letter goes on: it was settled by an owner that died
// before it could say so, or was deleted.
void OrderedListener::NoteEmptyLocked(int place) {
  Holds& holds = partitions_[static_cast<size_t>(place)].holds;
  holds.reread = true;
  for (auto& [name, held] : holds.keys) {
    if (held.was_seen || held.is_dead) continue;
    held.has_passed = holds.any_passed = true;
  }
}

void OrderedListener::HoldIfDead(Settler::Item* item, const Running& running) {
  if (holds_ == nullptr || !HasKey(running.key)) return;
  if (item->verdict.action != Verdict::Action::kDeadLetter) return;
  const queue::Message& message = item->lease->message;
  const absl::Status held = holds_->Hold(running.partition, running.key.substr(1), message);
  if (!held.ok()) {
    on_error_(base::Annotate(held, "holding the key of a message that is given up"));
    item->verdict = JudgePostponed(leases_.charged(*item->lease), environment_.rules);
    return;
  }
  base::MutexLock lock(&mu_);
  Partition& partition = partitions_[static_cast<size_t>(running.partition)];
  if (partition.term != running.term) return;
  partition.holds.keys[running.key] = {holds_->ItemOf(message), /*is_dead=*/true,
                                       /*was_seen=*/true};
  GiveBackLocked(running.partition, dispatcher_.TakeBehind(running.partition, running.key));
}

void OrderedListener::NoteDeletedLocked(const Running& running) {
  Partition& partition = partitions_[static_cast<size_t>(running.partition)];
  const auto found = partition.holds.keys.find(running.key);
  if (found == partition.holds.keys.end() ||
      holds_->ItemOf(running.lease->message) != found->second.item) {
    return;
  }
  found->second.has_passed = partition.holds.any_passed = true;
  partition.look_at = clock_->Monotonic();
  read_.NotifyAll();
}

}  // namespace muster::listener
