// SPDX-License-Identifier: Apache-2.0
#include "muster/queue/jetstream/held_log.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "muster/base/check.h"
#include "muster/base/log.h"
#include "muster/base/status.h"
#include "muster/nats/status.h"
#include "nlohmann/json.hpp"

namespace muster::queue::jetstream {

std::string EncodeHeld(absl::Span<const Delivery> held) {
  return absl::StrJoin(held, "\n", [](std::string* out, const Delivery& delivery) {
    absl::StrAppend(out, delivery.ack_subject);
  });
}

std::vector<Delivery> DecodeHeld(absl::string_view text) {
  std::vector<Delivery> held;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    absl::StatusOr<Delivery> delivery = ParseAckSubject(line);
    if (delivery.ok()) held.push_back(*std::move(delivery));
  }
  return held;
}

HeldLog::HeldLog(nats::JetStream* jetstream, std::string holder, const Settings& settings,
                 base::Clock* clock)
    : jetstream_(jetstream), holder_(std::move(holder)), settings_(settings), clock_(clock) {}

HeldLog::~HeldLog() {
  alive_.reset();
  if (!has_notes_ || !connection().connected()) return;
  base::LogUnlessOk(base::kInfo, "notes of what was held stay a while",
                    jetstream_->Purge(kHeldStream, HeldSubjectsOf(holder_)).status());
}

absl::Status HeldLog::Open() {
  if (!is_on() || alive_ != nullptr) return absl::OkStatus();
  MUSTER_RETURN_IF_ERROR(jetstream_->EnsureStream(HeldStreamSettings(settings_)));
  looked_after_ = connection().reconnects();
  const auto answer = [connection = &connection()](const nats::Incoming& question) {
    if (question.reply.empty()) return;
    connection->Publish({.subject = question.reply, .data = "alive"}).IgnoreError();
  };
  MUSTER_ASSIGN_OR_RETURN(alive_, connection().Subscribe(AliveSubjectOf(holder_), answer));
  return connection().Flush(jetstream_->timeout());
}

void HeldLog::Note(const queue::QueueId& queue, int slot, absl::Span<const Delivery> held) {
  if (!is_on()) return;
  has_notes_ = true;
  const std::string text = EncodeHeld(held);
  // While this connection is down, so is the subscription by which others learn that this process
  // lives, and the note is worth little.
  connection()
      .Publish({.subject = HeldSubjectOf(holder_, queue, slot), .data = text})
      .IgnoreError();
}

absl::StatusOr<int64_t> HeldLog::RefreshTerm() {
  if (!is_on() || connection().reconnects() == looked_after_) return term();
  base::MutexLock lock(&mu_);
  const int64_t reconnects = connection().reconnects();
  if (reconnects == looked_after_) return term();
  // A restarted server has lost the stream with its memory, and the mark, too.
  base::LogUnlessOk(base::kWarning, "what this instance holds is not noted",
                    jetstream_->EnsureStream(HeldStreamSettings(settings_)));
  const std::string mark = GivenBackSubjectOf(holder_);
  const absl::Status found = jetstream_->LastMessage(kHeldStream, mark).status();
  if (!found.ok() && !absl::IsNotFound(found)) return found;
  if (found.ok()) {
    ++term_;
    base::Log(base::kWarning, "others gave back what this instance held: it was cut off",
              {{"instance", holder_}});
    // If it stays, the next reconnection costs some leases.
    jetstream_->Purge(kHeldStream, mark).IgnoreError();
  }
  looked_after_ = reconnects;
  return term();
}

absl::Status HeldLog::CheckDead(const std::string& holder) {
  const absl::Status said =
      connection().Request({.subject = AliveSubjectOf(holder)}, kAliveTimeout).status();
  if (nats::IsNobodyListens(said)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "instance '", holder, "' ", said.ok() ? "lives" : "may live: its connection does"));
}

absl::Status HeldLog::CheckConnected() {
  const absl::Duration now = clock_->Monotonic();
  const int64_t reconnects = connection().reconnects();
  base::MutexLock lock(&mu_);
  if (reconnects != seen_reconnects_) {
    seen_reconnects_ = reconnects;
    trusted_from_ = now + kReconnectGrace;
  }
  if (connection().connected() && now >= trusted_from_) return absl::OkStatus();
  return absl::FailedPreconditionError("others may not have connected again yet");
}

absl::StatusOr<HeldLog::Held> HeldLog::Read(const std::string& holder) {
  Held held;
  const std::string subjects = HeldNotesOf(holder);
  for (uint64_t from = 1;;) {
    const auto note = jetstream_->NextMessage(kHeldStream, from, subjects);
    if (absl::IsNotFound(note.status())) return held;
    MUSTER_RETURN_IF_ERROR(note.status());
    const std::optional<queue::QueueId> queue = QueueOfHeld(note->subject);
    if (queue.has_value()) {
      std::vector<Delivery>& of_queue = held[{queue->account, queue->name}];
      for (Delivery& delivery : DecodeHeld(note->data)) of_queue.push_back(std::move(delivery));
    }
    from = note->sequence + 1;
  }
}

absl::StatusOr<HeldLog::Held> HeldLog::TakeFrom(const std::string& holder) {
  MUSTER_RETURN_IF_ERROR(CheckConnected());
  MUSTER_RETURN_IF_ERROR(CheckDead(holder));
  MUSTER_ASSIGN_OR_RETURN(Held held, Read(holder));
  if (held.empty()) return held;
  // The mark stays even if the holder turns out to live: another survivor may have taken the notes.
  const std::string mark = GivenBackSubjectOf(holder);
  MUSTER_RETURN_IF_ERROR(jetstream_->Publish({.subject = mark, .data = holder_}).status());
  MUSTER_RETURN_IF_ERROR(CheckDead(holder));
  MUSTER_ASSIGN_OR_RETURN(const int64_t purged,
                          jetstream_->Purge(kHeldStream, HeldNotesOf(holder)));
  if (purged == 0) held.clear();  // another survivor was first
  return held;
}

absl::Status HeldLog::Forget(const queue::QueueId& queue) {
  const absl::Status purged = jetstream_->Purge(kHeldStream, HeldNotesOfQueue(queue)).status();
  return absl::IsNotFound(purged) ? absl::OkStatus() : purged;
}

void HeldMessages::Add(absl::Span<const Delivery> received) {
  if (!log_->is_on() || received.empty()) return;
  base::MutexLock lock(&mu_);
  for (const Delivery& delivery : received) {
    const auto earlier = slot_of_.find(delivery.sequence);
    if (earlier == slot_of_.end()) continue;
    std::erase_if(slots_[earlier->second].held,
                  [&](const Delivery& held) { return held.sequence == delivery.sequence; });
  }
  const int slot = FreeSlotLocked();
  for (const Delivery& delivery : received) slot_of_[delivery.sequence] = slot;
  slots_[slot].held.assign(received.begin(), received.end());
  slots_[slot].filled = ++fills_;
  log_->Note(queue_, slot, received);
}

int HeldMessages::FreeSlotLocked() {
  const auto free = std::find_if(slots_.begin(), slots_.end(),
                                 [](const Slot& slot) { return slot.held.empty(); });
  if (free != slots_.end()) return static_cast<int>(free - slots_.begin());
  if (slots_.size() < static_cast<size_t>(kHeldSlots)) {
    slots_.emplace_back();
    return static_cast<int>(slots_.size()) - 1;
  }
  const auto oldest =
      std::min_element(slots_.begin(), slots_.end(),
                       [](const Slot& a, const Slot& b) { return a.filled < b.filled; });
  for (const Delivery& delivery : oldest->held) slot_of_.erase(delivery.sequence);
  oldest->held.clear();
  return static_cast<int>(oldest - slots_.begin());
}

int HeldMessages::RemoveLocked(uint64_t sequence, int deliveries) {
  const auto found = slot_of_.find(sequence);
  if (found == slot_of_.end()) return -1;
  const int slot = found->second;
  const size_t removed = std::erase_if(slots_[slot].held, [&](const Delivery& held) {
    return held.sequence == sequence && held.deliveries == deliveries;
  });
  if (removed == 0) return -1;
  slot_of_.erase(found);
  return slot;
}

void HeldMessages::Settled(const Delivery& delivery) {
  if (!log_->is_on()) return;
  base::MutexLock lock(&mu_);
  RemoveLocked(delivery.sequence, delivery.deliveries);
}

void HeldMessages::GivingBack(absl::Span<const Delivery> deliveries) {
  if (!log_->is_on()) return;
  base::MutexLock lock(&mu_);
  std::set<int> changed;
  for (const Delivery& delivery : deliveries) {
    const int slot = RemoveLocked(delivery.sequence, delivery.deliveries);
    if (slot >= 0) changed.insert(slot);
  }
  for (const int slot : changed) log_->Note(queue_, slot, slots_[slot].held);
}

void HeldMessages::Clear() {
  base::MutexLock lock(&mu_);
  slots_.clear();
  slot_of_.clear();
}

bool HeldMessages::empty() {
  base::MutexLock lock(&mu_);
  return slot_of_.empty();
}

}  // namespace muster::queue::jetstream
