// SPDX-License-Identifier: Apache-2.0
#include "muster/queue/rocksdb/message_index.h"

#include "muster/base/check.h"

namespace muster::queue::rocksdb {
namespace {

// Whether the first entry of `order` has a time at or before `now_us`.
template <typename Order>
bool IsDue(const Order& order, int64_t now_us) {
  return !order.empty() && order.begin()->first <= now_us;
}

}  // namespace

void MessageIndex::Insert(uint64_t seq, const MessageState& state, int64_t now_us) {
  // Puts and a restart insert in ascending order; the hint then makes an insert almost free.
  const size_t before = messages_.size();
  const auto it = messages_.emplace_hint(messages_.end(), seq, state);
  MUSTER_CHECK(messages_.size() > before, "sequence ", seq, " is in the index already");
  Link(seq, &it->second, now_us);
}

const MessageState* MessageIndex::Find(uint64_t seq) const {
  const auto it = messages_.find(seq);
  return it == messages_.end() ? nullptr : &it->second;
}

bool MessageIndex::IsOut(uint64_t seq) const {
  const MessageState* state = Find(seq);
  return state != nullptr && (state->place & kOutBit) != 0;
}

MessageState MessageIndex::CheckOut(uint64_t seq) {
  const auto it = messages_.find(seq);
  MUSTER_CHECK(it != messages_.end(), "sequence ", seq);
  MessageState& state = it->second;
  MUSTER_CHECK((state.place & kOutBit) == 0, "sequence ", seq, " is out already");
  Unlink(seq, state);
  state.place |= kOutBit;
  return state;
}

void MessageIndex::CheckIn(uint64_t seq, const MessageState& state, int64_t now_us) {
  MessageState& kept = FindOut(seq)->second;
  Uncount(kept);
  kept = state;
  Link(seq, &kept, now_us);
}

void MessageIndex::Erase(uint64_t seq) {
  const auto it = FindOut(seq);
  Uncount(it->second);
  messages_.erase(it);
}

MessageIndex::Messages::iterator MessageIndex::FindOut(uint64_t seq) {
  const auto it = messages_.find(seq);
  MUSTER_CHECK(it != messages_.end(), "sequence ", seq);
  MUSTER_CHECK((it->second.place & kOutBit) != 0, "sequence ", seq, " is in place ",
               int{it->second.place});
  return it;
}

void MessageIndex::Clear() {
  MUSTER_CHECK(ready_.size() + hidden_.size() == messages_.size(), "of ", messages_.size(),
               " messages are ", ready_.size(), " ready and ", hidden_.size(),
               " hidden: the others are out");
  *this = MessageIndex();
}

std::vector<uint64_t> MessageIndex::Ready(int64_t now_us, int max) {
  MUSTER_CHECK(0 <= max && max <= kMaxStep, "max ", max);
  Promote(now_us);
  std::vector<uint64_t> ready;
  int left = kMaxStep;
  for (auto it = ready_.begin(); it != ready_.end() && max > 0 && left > 0; ++it, --left) {
    // Expired, but no step has removed it yet.
    if (Find(it->second)->expiry_us <= now_us) continue;
    ready.push_back(it->second);
    --max;
  }
  return ready;
}

void MessageIndex::Expire(int64_t now_us, std::vector<uint64_t>* expired) {
  for (int left = kMaxStep; left > 0 && IsDue(expiring_, now_us); --left) {
    const uint64_t seq = expiring_.begin()->second;
    const auto it = messages_.find(seq);
    MUSTER_CHECK(it != messages_.end(), "sequence ", seq, " expires and is not in the index");
    Unlink(seq, it->second);
    Uncount(it->second);
    messages_.erase(it);
    expired->push_back(seq);
  }
}

bool MessageIndex::IsBehind(int64_t now_us) const {
  return IsDue(expiring_, now_us) || IsDue(hidden_, now_us);
}

int64_t MessageIndex::NextVisible() const {
  if (!ready_.empty()) return ready_.begin()->first;
  return hidden_.empty() ? kNeverUs : hidden_.begin()->first;
}

MessageIndex::Counts MessageIndex::CountsAt(int64_t now_us) {
  Promote(now_us);
  MUSTER_CHECK(counts_[kReady] + counts_[kHeldPlace] + counts_[kDelayedPlace] ==
                   static_cast<int64_t>(messages_.size()),
               counts_[kReady], " ready, ", counts_[kHeldPlace], " held, ", counts_[kDelayedPlace],
               " delayed, of ", messages_.size());
  return {counts_[kReady], counts_[kHeldPlace], counts_[kDelayedPlace]};
}

int64_t MessageIndex::OldestInsertion(int64_t now_us) const {
  // Sequences ascend in the order of puts, so the first message is the oldest.
  return messages_.empty() ? now_us : messages_.begin()->second.insertion_us;
}

std::vector<uint64_t> MessageIndex::Moved() const {
  std::vector<uint64_t> moved;
  for (const auto& [seq, state] : messages_) {
    if (state.visible_us != state.insertion_us) moved.push_back(seq);
  }
  return moved;
}

std::vector<uint64_t> MessageIndex::From(uint64_t seq, int64_t now_us, int max) const {
  std::vector<uint64_t> found;
  for (auto it = messages_.lower_bound(seq);
       it != messages_.end() && found.size() < static_cast<size_t>(max); ++it) {
    if (it->second.expiry_us > now_us) found.push_back(it->first);
  }
  return found;
}

std::optional<uint64_t> MessageIndex::FirstSequence() const {
  if (messages_.empty()) return std::nullopt;
  return messages_.begin()->first;
}

void MessageIndex::Link(uint64_t seq, MessageState* state, int64_t now_us) {
  const bool ready = state->visible_us <= now_us;
  state->place = ready ? kReady : state->has(kHeld) ? kHeldPlace : kDelayedPlace;
  ++counts_[state->place];
  Order& order = ready ? ready_ : hidden_;
  MUSTER_DCHECK(!order.contains({state->visible_us, seq}), "sequence ", seq, ", visible ",
                state->visible_us, ", place ", int{state->place});
  order.emplace_hint(order.end(), state->visible_us, seq);
  if (state->expiry_us != kNeverUs) {
    expiring_.emplace_hint(expiring_.end(), state->expiry_us, seq);
  }
}

void MessageIndex::Unlink(uint64_t seq, const MessageState& state) {
  const size_t ordered = (state.place == kReady ? ready_ : hidden_).erase({state.visible_us, seq});
  MUSTER_CHECK(ordered == 1, "sequence ", seq, ", visible ", state.visible_us, ", place ",
               int{state.place});
  if (state.expiry_us == kNeverUs) return;
  const size_t expiring = expiring_.erase({state.expiry_us, seq});
  MUSTER_CHECK(expiring == 1, "sequence ", seq, ", expiry ", state.expiry_us);
}

void MessageIndex::Uncount(const MessageState& state) {
  const int place = state.place & ~kOutBit;
  MUSTER_CHECK(place < kPlaces && counts_[place] > 0, "place ", place, ", counts ", counts_[kReady],
               " ", counts_[kHeldPlace], " ", counts_[kDelayedPlace]);
  --counts_[place];
}

void MessageIndex::Promote(int64_t now_us) {
  for (int left = kMaxStep; left > 0 && IsDue(hidden_, now_us); --left) {
    const auto first = hidden_.begin();
    const auto it = messages_.find(first->second);
    MUSTER_CHECK(it != messages_.end(), "sequence ", first->second, " is hidden and not there");
    MessageState& state = it->second;
    MUSTER_CHECK(state.place == kHeldPlace || state.place == kDelayedPlace, "sequence ",
                 first->second, " is hidden in place ", int{state.place});
    Uncount(state);
    state.place = kReady;
    ++counts_[kReady];
    ready_.insert(*first);
    hidden_.erase(first);
  }
}

}  // namespace muster::queue::rocksdb
