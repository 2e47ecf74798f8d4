// SPDX-License-Identifier: Apache-2.0

// Messages between two queues of a store, and the notes that are kept beside messages.
#include <iterator>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/failpoint.h"
#include "muster/base/status.h"
#include "muster/queue/limits.h"
#include "muster/queue/rocksdb/codec.h"
#include "muster/queue/rocksdb/durable_queue.h"
#include "rocksdb/db.h"

namespace muster::queue::rocksdb {

absl::StatusOr<NoteRecord> DurableQueue::ReadNote(uint64_t seq) const {
  const std::string key = NoteKey(number_, seq);
  const ReadResult read = storage_->Read(kMeta, key);
  if (read.status.ok()) return DecodeNote(read.value, key).value_or(NoteRecord());
  if (absl::IsNotFound(read.status) || absl::IsDataLoss(read.status)) return NoteRecord();
  return read.status;
}

void DurableQueue::PutNote(::rocksdb::WriteBatch* batch, uint64_t seq,
                           const NoteRecord& note) const {
  const std::string key = NoteKey(number_, seq);
  batch->Put(storage_->family(kMeta), key, EncodeNote(note, key));
}

// A message that no receive with a holder has taken costs no look-up.
absl::Status DurableQueue::NoteHolder(::rocksdb::WriteBatch* batch, const std::string& holder,
                                      Claim* claim, queue::Message* message) const {
  NoteRecord note;
  if (claim->before.has(kNoted)) {
    MUSTER_ASSIGN_OR_RETURN(note, ReadNote(claim->seq));
    message->last_holder = note.holder;
  }
  if (note.holder == holder) return absl::OkStatus();
  note.holder = holder;
  claim->after.flags |= kNoted;
  PutNote(batch, claim->seq, note);
  return absl::OkStatus();
}

absl::StatusOr<DurableQueue::Claim> DurableQueue::ClaimByIdLocked(absl::string_view message_id,
                                                                  int64_t now_us) {
  const auto seq = SequenceOf(storage_->salt(), number_, message_id);
  const MessageState* const state = seq.has_value() ? index_.Find(*seq) : nullptr;
  if (state == nullptr || (state->expiry_us <= now_us && !index_.IsOut(*seq))) {
    return absl::NotFoundError(
        absl::StrCat("queue '", id_.ToString(), "' has no message '", message_id, "'"));
  }
  if (index_.IsOut(*seq)) {
    return absl::UnavailableError(absl::StrCat(NameOf(*seq), " is being settled by another call"));
  }
  if (state->has(kHeld) && state->visible_us > now_us) {
    return absl::FailedPreconditionError(absl::StrCat(NameOf(*seq), " is held"));
  }
  return CheckOutLocked(*seq);
}

absl::StatusOr<DurableQueue::Claims> DurableQueue::ClaimForMove(
    absl::Span<const queue::MoveRequest> requests) {
  return ClaimEach(
      requests.size(), [&](size_t slot, Claims* claims) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
        const queue::MoveRequest& request = requests[slot];
        return request.receipt.empty() ? ClaimByIdLocked(request.message_id, claims->now_us)
                                       : ClaimLocked(request.receipt, Lapsed::kAccept, claims);
      });
}

absl::StatusOr<std::vector<std::string>> DurableQueue::TakeBodies(Claims* claims) {
  absl::StatusOr<std::vector<Fetched>> fetched = Fetch(claims->taken);
  if (!fetched.ok()) {
    CheckInAll(claims->taken, fetched.status());
    return fetched.status();
  }
  std::vector<std::string> bodies;
  std::vector<Claim> sound, damaged;
  for (size_t i = 0; i < claims->taken.size(); ++i) {
    Fetched& found = (*fetched)[i];
    if (found.damage.has_value()) {
      damaged.push_back(claims->taken[i]);
      claims->refused.push_back({claims->taken[i].slot, absl::DataLossError(*found.damage)});
    } else {
      sound.push_back(claims->taken[i]);
      bodies.push_back(std::move(found.body));
    }
  }
  CheckInAll(damaged, absl::OkStatus());  // `after` is still `before`
  claims->taken = std::move(sound);
  return bodies;
}

absl::StatusOr<std::vector<std::pair<uint64_t, MessageState>>> DurableQueue::PlaceMoved(
    const std::vector<Claim>& claims, absl::Span<const queue::MoveRequest> requests) {
  std::vector<std::pair<uint64_t, MessageState>> places;
  base::MutexLock lock(&mu_);
  MUSTER_RETURN_IF_ERROR(CheckAliveLocked());
  if (counters_.next_seq > kMaxSequence - claims.size()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("queue '", id_.ToString(), "' has used up its sequence numbers"));
  }
  const int64_t now_us = storage_->NowUs();
  for (const Claim& claim : claims) {
    const MessageState& before = claim.before;
    MessageState state;
    state.insertion_us = state.visible_us = now_us;
    if (before.expiry_us != kNeverUs) {
      state.expiry_us = now_us + (before.expiry_us - before.insertion_us);
    }
    state.lease = storage_->NextLease();
    if (requests[claim.slot].cause.has_value()) state.flags = kNoted;
    places.emplace_back(counters_.next_seq++, state);
  }
  return places;
}

absl::StatusOr<std::vector<absl::Status>> DurableQueue::MoveTo(
    DurableQueue* to, absl::Span<const queue::MoveRequest> requests) {
  MUSTER_CHECK(to != this, "queue '", id_.ToString(), "'");
  // All moves enter in the same order, so that two that cross never wait for each other.
  SharedEntry first(number_ < to->number_ ? &gate_ : &to->gate_);
  SharedEntry second(number_ < to->number_ ? &to->gate_ : &gate_);
  MUSTER_ASSIGN_OR_RETURN(Claims claims, ClaimForMove(requests));
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> bodies, TakeBodies(&claims));
  const auto places = to->PlaceMoved(claims.taken, requests);
  if (!places.ok()) {
    CheckInAll(claims.taken, places.status());
    return places.status();
  }
  ::rocksdb::WriteBatch batch;
  Counters added;
  for (size_t i = 0; i < claims.taken.size(); ++i) {
    const Claim& claim = claims.taken[i];
    const auto& [seq, state] = (*places)[i];
    DeleteMessage(&batch, claim.seq, claim.before.has(kNoted));
    to->PutState(&batch, seq, state);
    PutBody(&batch, storage_->family(kBody), MessageKey(to->number_, seq), bodies[i]);
    if (requests[claim.slot].cause.has_value()) {
      NoteRecord note;
      note.origin = {id_, MessageId(claim.seq), claim.before.insertion_us,
                     *requests[claim.slot].cause};
      queue::Cause& cause = note.origin->cause;
      if (cause.time == absl::Time()) cause.time = FromUs(claims.now_us);
      cause.reason = queue::CutReason(cause.reason);
      cause.holder = queue::CutReason(cause.holder);
      to->PutNote(&batch, seq, note);
    }
    ++added.in;
    added.next_seq = seq + 1;
  }
  if (added.in > 0) to->AddToCounters(&batch, added);
  const absl::Status written =
      WriteClaims(claims, &batch, Counters(), muster::rocksdb::Durability::kPower);
  MUSTER_FAILPOINT("queue.after_move");
  std::vector<absl::Status> results(requests.size(), written);
  for (const Refusal& refusal : claims.refused) results[refusal.slot] = refusal.status;
  if (!written.ok()) {
    CheckInAll(claims.taken, written);
    return results;
  }
  {
    base::MutexLock lock(&mu_);
    for (const Claim& claim : claims.taken) index_.Erase(claim.seq);
  }
  base::MutexLock lock(&to->mu_);
  for (const auto& [seq, state] : *places) to->index_.Insert(seq, state, storage_->NowUs());
  to->counters_.in += added.in;
  return results;
}

bool DurableQueue::IsStored(uint64_t seq) {
  base::MutexLock lock(&mu_);
  return index_.Find(seq) != nullptr;
}

bool DurableQueue::IsFree(uint64_t seq) {
  base::MutexLock lock(&mu_);
  const MessageState* const state = index_.Find(seq);
  if (state == nullptr || index_.IsOut(seq)) return false;
  return !state->has(kHeld) || state->visible_us <= storage_->NowUs();
}

absl::Status DurableQueue::ForEachMoved(
    uint64_t seq,
    const std::function<absl::StatusOr<bool>(uint64_t, const NoteOrigin&)>& visit) const {
  const std::string end = NoteKey(number_ + 1, 0);
  const std::unique_ptr<::rocksdb::Iterator> it(
      storage_->db()->NewIterator(::rocksdb::ReadOptions(), storage_->family(kMeta)));
  for (it->Seek(NoteKey(number_, seq)); it->Valid() && ToView(it->key()) < end; it->Next()) {
    const absl::string_view key = ToView(it->key());
    const auto note = DecodeNote(ToView(it->value()), key);
    if (!note.has_value() || !note->origin.has_value()) continue;
    MUSTER_ASSIGN_OR_RETURN(const bool goes_on,
                            visit(muster::rocksdb::KeyNumber(key.substr(9)), *note->origin));
    if (!goes_on) break;
  }
  return muster::rocksdb::ToStatus(it->status(), "read the notes of messages");
}

absl::StatusOr<uint64_t> DurableQueue::SequenceAfter(absl::string_view after) const {
  if (after.empty()) return 0;
  const auto seq = SequenceOf(storage_->salt(), number_, after);
  if (seq.has_value()) return *seq + 1;
  return absl::InvalidArgumentError(
      absl::StrCat("queue '", id_.ToString(), "' never had a message '", after, "' to list after"));
}

absl::StatusOr<std::optional<queue::PoisonMessage>> DurableQueue::ReadMoved(
    uint64_t seq, const NoteOrigin& origin) const {
  const std::string key = MessageKey(number_, seq);
  ReadResult body = storage_->Read(kBody, key);
  if (absl::IsNotFound(body.status)) return std::nullopt;
  MUSTER_RETURN_IF_ERROR(body.status);
  // A damaged message is set aside by the next receive, which tells more about it.
  if (!StripToBody(&body.value, key)) return std::nullopt;
  return queue::PoisonMessage{MessageId(seq), std::move(body.value), FromUs(origin.insertion_us),
                              origin.cause,   origin.queue,          origin.message_id};
}

// Two sequences in order, which never have a message in common.
absl::StatusOr<std::map<uint64_t, std::optional<NoteOrigin>>> DurableQueue::PoisonFrom(
    uint64_t from, size_t most) {
  std::map<uint64_t, std::optional<NoteOrigin>> found;
  {
    base::MutexLock lock(&mu_);
    MUSTER_RETURN_IF_ERROR(CheckAliveLocked());
    for (auto it = poison_.lower_bound(from); it != poison_.end() && found.size() < most; ++it) {
      found.emplace(*it, std::nullopt);
    }
  }
  size_t moved = 0;
  MUSTER_RETURN_IF_ERROR(
      ForEachMoved(from, [&](uint64_t seq, const NoteOrigin& origin) -> absl::StatusOr<bool> {
        if (!IsStored(seq)) return true;
        found.emplace(seq, origin);
        return ++moved < most;
      }));
  // Behind the last one of a sequence that was cut off, the other one may have more.
  while (found.size() > most) found.erase(std::prev(found.end()));
  return found;
}

absl::StatusOr<std::vector<queue::PoisonMessage>> DurableQueue::ListPoison(absl::string_view after,
                                                                           int max_messages) {
  MUSTER_CHECK(max_messages > 0, "max_messages ", max_messages);
  MUSTER_ASSIGN_OR_RETURN(uint64_t from, SequenceAfter(after));
  CatchUp();
  std::vector<queue::PoisonMessage> page;
  // Those that cannot be shown make no empty page, which would say that there are no more.
  while (page.empty()) {
    MUSTER_ASSIGN_OR_RETURN(const auto found, PoisonFrom(from, static_cast<size_t>(max_messages)));
    if (found.empty()) break;
    size_t bytes = 0;
    for (const auto& [seq, origin] : found) {
      if (bytes >= queue::kMaxPutBytes) break;
      MUSTER_ASSIGN_OR_RETURN(auto message,
                              origin.has_value() ? ReadMoved(seq, *origin) : ReadPoison(seq));
      if (!message.has_value()) continue;
      bytes += message->body.size();
      page.push_back(*std::move(message));
    }
    from = found.rbegin()->first + 1;
  }
  return page;
}

absl::StatusOr<std::optional<queue::PoisonMessage>> DurableQueue::FindOnePoison(
    const queue::PoisonName& name) {
  const bool has_id = !name.message_id.empty();
  const std::optional<uint64_t> seq =
      has_id ? SequenceOf(storage_->salt(), number_, name.message_id) : name.position;
  if (!seq.has_value()) return std::nullopt;
  MUSTER_ASSIGN_OR_RETURN(const std::vector<uint64_t> own, StillPoison({*seq}));
  if (!own.empty()) {
    MUSTER_ASSIGN_OR_RETURN(auto message, ReadPoison(*seq));
    // Another incarnation of the queue may have given the position to another message.
    const bool is_it =
        message.has_value() && (has_id || message->insertion_time == name.insertion_time);
    return is_it ? std::move(message) : std::nullopt;
  }
  if (!has_id || !IsStored(*seq)) return std::nullopt;
  MUSTER_ASSIGN_OR_RETURN(const NoteRecord note, ReadNote(*seq));
  if (!note.origin.has_value()) return std::nullopt;
  return ReadMoved(*seq, *note.origin);
}

absl::StatusOr<std::vector<std::optional<queue::PoisonMessage>>> DurableQueue::FindPoison(
    absl::Span<const queue::PoisonName> names) {
  CatchUp();
  std::vector<std::optional<queue::PoisonMessage>> found;
  for (const queue::PoisonName& name : names) {
    MUSTER_ASSIGN_OR_RETURN(found.emplace_back(), FindOnePoison(name));
  }
  return found;
}

// What stays is passed by, not chosen: a thousand messages of a deleted queue would keep all behind
// them here.
absl::StatusOr<DurableQueue::MovesByOrigin> DurableQueue::ChooseMoved(
    absl::Span<const std::string> message_ids, int64_t max_messages,
    const std::function<bool(const queue::QueueId&)>& is_there) {
  CatchUp();
  MovesByOrigin moves;
  const auto add = [&](uint64_t seq, const NoteOrigin& origin) {
    if (!is_there(origin.queue)) return false;
    queue::MoveRequest request;
    request.message_id = MessageId(seq);
    moves[{origin.queue.account, origin.queue.name}].push_back(std::move(request));
    return true;
  };
  for (const std::string& id : message_ids) {
    const auto seq = SequenceOf(storage_->salt(), number_, id);
    if (!seq.has_value()) continue;
    MUSTER_ASSIGN_OR_RETURN(const NoteRecord note, ReadNote(*seq));
    if (note.origin.has_value()) add(*seq, *note.origin);
  }
  if (!message_ids.empty() || max_messages <= 0) return moves;
  int64_t left = max_messages;
  MUSTER_RETURN_IF_ERROR(
      ForEachMoved(0, [&](uint64_t seq, const NoteOrigin& origin) -> absl::StatusOr<bool> {
        if (IsFree(seq) && add(seq, origin)) --left;
        return left > 0;
      }));
  return moves;
}

}  // namespace muster::queue::rocksdb
