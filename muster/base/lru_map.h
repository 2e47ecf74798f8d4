// SPDX-License-Identifier: Apache-2.0

// LruMap: a map of bounded size, which drops the entry that was used least recently.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <utility>

namespace muster::base {

// Not thread-safe. Pointers to values stay valid until their entry is erased or dropped.
template <typename Key, typename Value>
class LruMap {
 public:
  // Holds at most `capacity` entries, which is above 0.
  explicit LruMap(size_t capacity) : capacity_(capacity) {}

  LruMap(const LruMap&) = delete;
  LruMap& operator=(const LruMap&) = delete;

  // The value of `key`, which this uses; nullptr: there is none.
  Value* Find(const Key& key) {
    const auto found = places_.find(key);
    if (found == places_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, found->second);
    return &found->second->second;
  }

  // The same, but counts as no use.
  const Value* Peek(const Key& key) const {
    const auto found = places_.find(key);
    return found == places_.end() ? nullptr : &found->second->second;
  }

  // The value of `key`, which this uses, and whether it is new: then it is a Value(), for which the
  // entry that was used least recently has gone if there were `capacity`.
  std::pair<Value*, bool> FindOrAdd(const Key& key) {
    if (Value* const found = Find(key); found != nullptr) return {found, false};
    if (entries_.size() >= capacity_) DropLeastRecent();
    entries_.emplace_front(key, Value());
    places_.emplace(key, entries_.begin());
    return {&entries_.front().second, true};
  }

  // False: there is none.
  bool Erase(const Key& key) {
    const auto found = places_.find(key);
    if (found == places_.end()) return false;
    entries_.erase(found->second);
    places_.erase(found);
    return true;
  }

  // Erases the entries for which `is_over`(const Value&) is true.
  template <typename Predicate>
  void EraseIf(Predicate is_over) {
    for (auto entry = entries_.begin(); entry != entries_.end();) {
      if (!is_over(std::as_const(entry->second))) {
        ++entry;
        continue;
      }
      places_.erase(entry->first);
      entry = entries_.erase(entry);
    }
  }

  // Call it only if there is an entry.
  void DropLeastRecent() {
    places_.erase(entries_.back().first);
    entries_.pop_back();
  }

  size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }

  // Over std::pair<const Key, Value>, what was used last first.
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }

 private:
  using Entries = std::list<std::pair<const Key, Value>>;

  const size_t capacity_;
  Entries entries_;  // what was used last first
  std::map<Key, typename Entries::iterator, std::less<>> places_;
};

}  // namespace muster::base
