// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/queue/queue_model.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/queue/limits.h"

namespace muster::queue::testing {

void QueueModel::At(absl::Time now, int call) {
  now_ = now;
  call_ = call;
  must_be_durable_ = false;
  expired_ += static_cast<int64_t>(
      std::erase_if(messages_, [&](const auto& entry) { return entry.second.expiration <= now_; }));
}

absl::Status QueueModel::Missing() const {
  return exists_ ? absl::OkStatus() : absl::NotFoundError("no queue");
}

void QueueModel::ForgetAll() {
  const QueueModel before = std::exchange(*this, QueueModel());
  holders_in_process_ = before.holders_in_process_;
  At(before.now_, before.call_);
}

absl::Status QueueModel::Create(const Metadata& metadata) {
  if (exists_ && metadata_ != metadata) return absl::AlreadyExistsError("other metadata");
  if (exists_) return absl::OkStatus();
  ForgetAll();
  exists_ = must_be_durable_ = true;
  metadata_ = metadata;
  return absl::OkStatus();
}

absl::Status QueueModel::Destroy() {
  if (!exists_) return Missing();
  ForgetAll();
  must_be_durable_ = true;
  return absl::OkStatus();
}

absl::StatusOr<Metadata> QueueModel::GetMetadata() const {
  if (!exists_) return Missing();
  return metadata_;
}

absl::Status QueueModel::SetMetadata(const Metadata& metadata) {
  if (!exists_) return Missing();
  metadata_ = metadata;
  must_be_durable_ = true;
  return absl::OkStatus();
}

const QueueModel::Remembered* QueueModel::FindDuplicate(const std::string& dedup_id) const {
  const auto found = remembered_.find(dedup_id);
  if (found == remembered_.end()) return nullptr;
  const Remembered& first = found->second;
  const bool counts =
      messages_.contains(first.seq) || poison_.contains(first.seq) || now_ < first.until;
  return counts ? &first : nullptr;
}

absl::StatusOr<std::vector<PutResult>> QueueModel::Put(const std::vector<NewMessage>& messages) {
  if (!exists_) return Missing();
  std::vector<PutResult> results;
  for (const NewMessage& put : messages) {
    PutResult& result = results.emplace_back();
    if (const Remembered* first = FindDuplicate(put.dedup_id); first != nullptr) {
      result.message_id = first->id;
      result.duplicate = true;
      continue;
    }
    const uint64_t seq = next_seq_++;
    if (!put.dedup_id.empty()) {
      remembered_[put.dedup_id] = {put.body, seq, now_ + kDedupWindow};
    }
    Stored& message = messages_[seq];
    message.id = message.body = put.body;
    message.insertion = now_;
    message.expiration = now_ + put.ttl;
    Hide(&message, put.delay);
    ++in_;
    must_be_durable_ = true;
    result = {message.id, message.receipt, now_, message.expiration, message.visible, false};
  }
  return results;
}

void QueueModel::Hide(Stored* message, absl::Duration visibility) {
  message->visible = message->lease_end = now_ + visibility;
  message->receipt = absl::StrCat(message->id, "#", call_);
}

std::vector<uint64_t> QueueModel::Ready(int max_messages) const {
  std::vector<std::pair<absl::Time, uint64_t>> order;
  for (const auto& [seq, message] : messages_) {
    if (message.visible <= now_) order.emplace_back(message.visible, seq);
  }
  std::sort(order.begin(), order.end());
  order.resize(std::min(order.size(), static_cast<size_t>(max_messages)));
  std::vector<uint64_t> seqs;
  for (const auto& [visible, seq] : order) seqs.push_back(seq);
  return seqs;
}

Message QueueModel::Show(const Stored& message) {
  return {message.id,
          message.body,
          message.insertion,
          message.expiration,
          message.visible,
          message.dequeues,
          message.attempts,
          message.suspect || message.began,
          ""};
}

absl::StatusOr<std::vector<Message>> QueueModel::Receive(const ReceiveOptions& options) {
  if (!exists_) return Missing();
  std::vector<Message> received;
  for (const uint64_t seq : Ready(options.max_messages)) {
    Stored& message = messages_[seq];
    if (holders_in_process_) unwritten_.emplace(seq, message);
    Hide(&message, options.visibility);
    ++message.dequeues;
    message.held = true;
    message.suspect |= message.began;
    message.began = false;
    received.push_back(Show(message));
    received.back().receipt = message.receipt;
  }
  return received;
}

absl::StatusOr<std::vector<Message>> QueueModel::Peek(int max_messages) const {
  if (!exists_) return Missing();
  std::vector<Message> shown;
  for (const uint64_t seq : Ready(max_messages)) shown.push_back(Show(messages_.at(seq)));
  return shown;
}

absl::StatusOr<QueueModel::Messages::iterator> QueueModel::Find(const Receipt& receipt) {
  const std::vector<std::string> parts = absl::StrSplit(receipt, '#');
  const auto found = std::find_if(messages_.begin(), messages_.end(), [&](const auto& entry) {
    return entry.second.id == parts.front();
  });
  if (found == messages_.end()) return absl::NotFoundError("gone");
  if (found->second.receipt == receipt) return found;
  ++stale_;
  return absl::FailedPreconditionError("lost");
}

absl::StatusOr<std::vector<absl::StatusOr<int>>> QueueModel::BeginAttempt(
    const std::vector<Receipt>& receipts) {
  if (!exists_) return Missing();
  std::vector<absl::StatusOr<int>> results;
  for (const Receipt& receipt : receipts) {
    const auto found = Find(receipt);
    if (!found.ok()) {
      results.push_back(found.status());
      continue;
    }
    Stored& message = (*found)->second;
    if (!message.held || message.visible <= now_) {
      ++stale_;
      results.push_back(absl::FailedPreconditionError("nobody holds it"));
      continue;
    }
    Write((*found)->first);
    message.began = true;
    results.push_back(++message.attempts);
  }
  return results;
}

absl::StatusOr<std::vector<absl::StatusOr<UpdateResult>>> QueueModel::Update(
    const std::vector<UpdateRequest>& requests) {
  if (!exists_) return Missing();
  std::vector<absl::StatusOr<UpdateResult>> results;
  for (const UpdateRequest& request : requests) {
    const auto found = Find(request.receipt);
    if (!found.ok()) {
      results.push_back(found.status());
      continue;
    }
    Stored& message = (*found)->second;
    Write((*found)->first);
    Hide(&message, request.visibility);
    if (request.body.has_value()) message.body = *request.body;
    if (request.attempt_ended) {
      message.held = false;
      if (message.began && request.refund_attempt) --message.attempts;
      // A holder that began no attempt leaves the suspicion in place.
      if (message.began) message.began = message.suspect = false;
    }
    must_be_durable_ = true;
    results.push_back(UpdateResult{message.receipt, message.visible});
  }
  return results;
}

absl::StatusOr<std::vector<absl::Status>> QueueModel::Delete(const std::vector<Receipt>& receipts) {
  if (!exists_) return Missing();
  std::vector<absl::Status> results;
  for (const Receipt& receipt : receipts) {
    const auto found = Find(receipt);
    results.push_back(found.status());
    if (!found.ok()) continue;
    Write((*found)->first);
    messages_.erase(*found);
    ++out_;
    must_be_durable_ = true;
  }
  return results;
}

absl::Status QueueModel::Clear() {
  if (!exists_) return Missing();
  messages_.clear();
  unwritten_.clear();
  for (auto& [dedup_id, first] : remembered_) first.until = absl::InfinitePast();
  must_be_durable_ = true;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<absl::Status>> QueueModel::DeadLetter(
    const std::vector<DeadLetterRequest>& requests) {
  if (!exists_) return Missing();
  std::vector<absl::Status> results;
  for (const DeadLetterRequest& request : requests) {
    const auto found = Find(request.receipt);
    results.push_back(found.status());
    if (!found.ok()) continue;
    const auto& [seq, message] = **found;
    Write(seq);
    const Cause& cause = request.cause;
    const absl::Time time = cause.time == absl::Time() ? now_ : cause.time;
    poison_[seq] = {message, cause.reason, cause.holder, cause.attempts, time};
    messages_.erase(*found);
    must_be_durable_ = true;
  }
  return results;
}

absl::StatusOr<std::vector<PoisonMessage>> QueueModel::ListPoison() const {
  if (!exists_) return Missing();
  std::vector<PoisonMessage> all;
  for (const auto& [seq, buried] : poison_) {
    all.push_back({buried.message.id,
                   buried.message.body,
                   buried.message.insertion,
                   {buried.reason, buried.attempts, buried.holder, buried.time}});
  }
  return all;
}

absl::StatusOr<int64_t> QueueModel::Redrive(const std::vector<std::string>& ids,
                                            int64_t max_messages) {
  if (!exists_) return Missing();
  int64_t redriven = 0;
  for (auto it = poison_.begin(); it != poison_.end();) {
    const Stored& old = it->second.message;
    const bool meant = ids.empty() ? redriven < max_messages
                                   : std::find(ids.begin(), ids.end(), old.id) != ids.end();
    if (!meant) {
      ++it;
      continue;
    }
    Stored& message = messages_[it->first];
    message.id = old.id;
    message.body = old.body;
    message.insertion = old.insertion;
    // A new lifetime, as long as that from its put to its previous expiration.
    message.expiration = now_ + (old.expiration - old.insertion);
    Hide(&message, absl::ZeroDuration());
    it = poison_.erase(it);
    ++redriven;
    must_be_durable_ = true;
  }
  return redriven;
}

absl::StatusOr<int64_t> QueueModel::PurgePoison() {
  if (!exists_) return Missing();
  const auto purged = static_cast<int64_t>(poison_.size());
  poison_.clear();
  must_be_durable_ |= purged > 0;
  return purged;
}

absl::StatusOr<QueueStats> QueueModel::Stats() const {
  if (!exists_) return Missing();
  QueueStats stats;
  for (const auto& [seq, message] : messages_) {
    ++(message.visible <= now_ ? stats.ready : message.held ? stats.in_flight : stats.delayed);
    stats.oldest_age = std::max(stats.oldest_age, now_ - message.insertion);
  }
  stats.poison = static_cast<int64_t>(poison_.size());
  stats.total_in = in_;
  stats.total_out = out_;
  stats.total_expired = expired_;
  stats.stale_receipts = stale_;
  return stats;
}

void QueueModel::Reopen(bool holders_in_process) {
  for (auto& [seq, message] : messages_) {
    if (const auto found = unwritten_.find(seq); found != unwritten_.end()) message = found->second;
    message.visible = message.lease_end;
    if (holders_in_process && message.held) message.visible = std::min(message.visible, now_);
  }
  unwritten_.clear();
  holders_in_process_ = holders_in_process;
}

}  // namespace muster::queue::testing
