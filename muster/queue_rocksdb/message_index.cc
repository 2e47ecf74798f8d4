#include "muster/queue_rocksdb/message_index.h"

namespace muster::queue_rocksdb {

void MessageIndex::Insert(uint64_t seq, const MessageState& state, int64_t now_us) {
  // Puts and a restart insert in order, where the hint makes an insert cost nearly nothing.
  const auto it = messages_.emplace_hint(messages_.end(), seq, state);
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
  MessageState& state = messages_.find(seq)->second;
  Unlink(seq, state);
  state.place |= kOutBit;
  return state;
}

void MessageIndex::CheckIn(uint64_t seq, const MessageState& state, int64_t now_us) {
  MessageState& kept = messages_.find(seq)->second;
  Uncount(kept);
  kept = state;
  Link(seq, &kept, now_us);
}

void MessageIndex::Erase(uint64_t seq) {
  const auto it = messages_.find(seq);
  Uncount(it->second);
  messages_.erase(it);
}

void MessageIndex::Clear() { *this = MessageIndex(); }

std::vector<uint64_t> MessageIndex::Ready(int64_t now_us, int max) {
  Promote(now_us);
  std::vector<uint64_t> ready;
  for (auto it = ready_.begin(); it != ready_.end() && max > 0; ++it, --max) {
    ready.push_back(it->second);
  }
  return ready;
}

void MessageIndex::Expire(int64_t now_us, std::vector<uint64_t>* expired) {
  while (!expiring_.empty() && expiring_.begin()->first <= now_us) {
    const uint64_t seq = expiring_.begin()->second;
    const auto it = messages_.find(seq);
    Unlink(seq, it->second);
    Uncount(it->second);
    messages_.erase(it);
    expired->push_back(seq);
  }
}

MessageIndex::Counts MessageIndex::CountsAt(int64_t now_us) {
  Promote(now_us);
  return {counts_[kReady], counts_[kHeldPlace], counts_[kDelayedPlace]};
}

int64_t MessageIndex::OldestInsertion(int64_t now_us) const {
  // Sequences are given in the order of puts, so the first is the oldest.
  return messages_.empty() ? now_us : messages_.begin()->second.insertion_us;
}

void MessageIndex::Link(uint64_t seq, MessageState* state, int64_t now_us) {
  const bool ready = state->visible_us <= now_us;
  state->place = ready ? kReady : state->has(kHeld) ? kHeldPlace : kDelayedPlace;
  ++counts_[state->place];
  Order& order = ready ? ready_ : hidden_;
  order.emplace_hint(order.end(), state->visible_us, seq);
  if (state->expiry_us != kNeverUs) {
    expiring_.emplace_hint(expiring_.end(), state->expiry_us, seq);
  }
}

void MessageIndex::Unlink(uint64_t seq, const MessageState& state) {
  (state.place == kReady ? ready_ : hidden_).erase({state.visible_us, seq});
  if (state.expiry_us != kNeverUs) expiring_.erase({state.expiry_us, seq});
}

void MessageIndex::Uncount(const MessageState& state) {
  --counts_[state.place & static_cast<uint8_t>(~kOutBit)];
}

void MessageIndex::Promote(int64_t now_us) {
  while (!hidden_.empty() && hidden_.begin()->first <= now_us) {
    const auto first = hidden_.begin();
    MessageState& state = messages_.find(first->second)->second;
    --counts_[state.place];
    state.place = kReady;
    ++counts_[kReady];
    ready_.insert(*first);
    hidden_.erase(first);
  }
}

}  // namespace muster::queue_rocksdb
