// SPDX-License-Identifier: Apache-2.0
#include "muster/queue/store_decorators.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/retry.h"

namespace muster::queue {

absl::string_view NameOf(Verb verb) {
  switch (verb) {
    case Verb::kAdministration:
      return "administration";
    case Verb::kPut:
      return "put";
    case Verb::kReceive:
      return "receive";
    case Verb::kPeek:
      return "peek";
    case Verb::kBeginAttempt:
      return "begin";
    case Verb::kUpdate:
      return "update";
    case Verb::kDelete:
      return "delete";
    case Verb::kClear:
      return "clear";
    case Verb::kDeadLetter:
      return "dead-letter";
    case Verb::kPoison:
      return "poison";
    case Verb::kStats:
      return "stats";
  }
  return "unknown";
}

template <typename Call, typename IsUseful>
auto InterceptedStore::Intercept(Verb verb, const QueueId& queue, Call call, IsUseful is_useful)
    -> decltype(call()) {
  if (absl::Status refused = Before(verb, queue); !refused.ok()) return refused;
  auto result = call();
  After(verb, queue, result.ok() && is_useful(result));
  return result;
}

template <typename Call>
auto InterceptedStore::Intercept(Verb verb, const QueueId& queue, Call call) -> decltype(call()) {
  return Intercept(verb, queue, std::move(call), [](const auto&) { return true; });
}

template <typename Result, typename Item, typename Call>
std::vector<absl::StatusOr<Result>> InterceptedStore::InterceptEach(
    Verb verb, absl::Span<const ForQueue<Item>> asked, Call call) {
  std::vector<absl::StatusOr<Result>> results(asked.size(), Result());
  std::vector<ForQueue<Item>> admitted;
  std::vector<size_t> places;
  for (size_t i = 0; i < asked.size(); ++i) {
    if (absl::Status refused = Before(verb, asked[i].queue); !refused.ok()) {
      results[i] = std::move(refused);
      continue;
    }
    admitted.push_back(asked[i]);
    places.push_back(i);
  }
  std::vector<absl::StatusOr<Result>> done = call(absl::MakeConstSpan(admitted));
  for (size_t i = 0; i < places.size(); ++i) {
    After(verb, admitted[i].queue, done[i].ok());
    results[places[i]] = std::move(done[i]);
  }
  return results;
}

absl::Status InterceptedStore::CreateQueue(const QueueId& queue, const Metadata& metadata) {
  return Intercept(Verb::kAdministration, queue,
                   [&] { return behind_->CreateQueue(queue, metadata); });
}

absl::Status InterceptedStore::DeleteQueue(const QueueId& queue) {
  return Intercept(Verb::kAdministration, queue, [&] { return behind_->DeleteQueue(queue); });
}

absl::StatusOr<std::vector<QueueInfo>> InterceptedStore::ListQueues(
    const ListQueuesRequest& request) {
  return Intercept(Verb::kAdministration, {request.account, ""},
                   [&] { return behind_->ListQueues(request); });
}

absl::StatusOr<Metadata> InterceptedStore::GetMetadata(const QueueId& queue) {
  return Intercept(Verb::kAdministration, queue, [&] { return behind_->GetMetadata(queue); });
}

absl::Status InterceptedStore::SetMetadata(const QueueId& queue, const Metadata& metadata) {
  return Intercept(Verb::kAdministration, queue,
                   [&] { return behind_->SetMetadata(queue, metadata); });
}

absl::StatusOr<std::vector<PutResult>> InterceptedStore::Put(
    const QueueId& queue, absl::Span<const NewMessage> messages) {
  return Intercept(Verb::kPut, queue, [&] { return behind_->Put(queue, messages); });
}

std::vector<absl::StatusOr<std::vector<PutResult>>> InterceptedStore::PutEach(
    absl::Span<const ForQueue<NewMessage>> puts) {
  if (!traits().joins_queues) return QueueStore::PutEach(puts);
  return InterceptEach<std::vector<PutResult>>(
      Verb::kPut, puts,
      [&](absl::Span<const ForQueue<NewMessage>> admitted) { return behind_->PutEach(admitted); });
}

absl::StatusOr<std::vector<Message>> InterceptedStore::Receive(const QueueId& queue,
                                                               const ReceiveOptions& options) {
  return Intercept(
      Verb::kReceive, queue, [&] { return behind_->Receive(queue, options); },
      [](const auto& messages) { return !messages->empty(); });
}

absl::StatusOr<std::unique_ptr<QueueStore::Wait>> InterceptedStore::AwaitMessage(
    const QueueId& queue, absl::Duration patience, TakeMessage take) {
  MUSTER_RETURN_IF_ERROR(Before(Verb::kReceive, queue));
  auto wait = behind_->AwaitMessage(
      queue, patience, [this, queue, take = std::move(take)](absl::StatusOr<Message> message) {
        const bool useful = message.ok();
        const bool taken = take(std::move(message));
        After(Verb::kReceive, queue, useful && taken);
        return taken;
      });
  if (!wait.ok()) After(Verb::kReceive, queue, false);
  return wait;
}

absl::StatusOr<std::vector<Message>> InterceptedStore::Peek(const QueueId& queue,
                                                            int max_messages) {
  return Intercept(Verb::kPeek, queue, [&] { return behind_->Peek(queue, max_messages); });
}

absl::StatusOr<std::vector<absl::StatusOr<int>>> InterceptedStore::BeginAttempt(
    const QueueId& queue, absl::Span<const Receipt> receipts) {
  return Intercept(Verb::kBeginAttempt, queue,
                   [&] { return behind_->BeginAttempt(queue, receipts); });
}

absl::StatusOr<std::vector<absl::StatusOr<UpdateResult>>> InterceptedStore::Update(
    const QueueId& queue, absl::Span<const UpdateRequest> requests) {
  return Intercept(Verb::kUpdate, queue, [&] { return behind_->Update(queue, requests); });
}

absl::StatusOr<std::vector<absl::Status>> InterceptedStore::Delete(
    const QueueId& queue, absl::Span<const Receipt> receipts) {
  return Intercept(Verb::kDelete, queue, [&] { return behind_->Delete(queue, receipts); });
}

std::vector<absl::StatusOr<std::vector<absl::Status>>> InterceptedStore::DeleteEach(
    absl::Span<const ForQueue<Receipt>> deletes) {
  if (!traits().joins_queues) return QueueStore::DeleteEach(deletes);
  return InterceptEach<std::vector<absl::Status>>(
      Verb::kDelete, deletes,
      [&](absl::Span<const ForQueue<Receipt>> admitted) { return behind_->DeleteEach(admitted); });
}

absl::Status InterceptedStore::Clear(const QueueId& queue) {
  return Intercept(Verb::kClear, queue, [&] { return behind_->Clear(queue); });
}

absl::StatusOr<std::vector<absl::Status>> InterceptedStore::DeadLetter(
    const QueueId& queue, absl::Span<const DeadLetterRequest> requests) {
  return Intercept(Verb::kDeadLetter, queue, [&] { return behind_->DeadLetter(queue, requests); });
}

absl::StatusOr<std::vector<PoisonMessage>> InterceptedStore::ListPoison(const QueueId& queue,
                                                                        absl::string_view after,
                                                                        int max_messages) {
  return Intercept(Verb::kPoison, queue,
                   [&] { return behind_->ListPoison(queue, after, max_messages); });
}

absl::StatusOr<std::vector<std::optional<PoisonMessage>>> InterceptedStore::FindPoison(
    const QueueId& queue, absl::Span<const PoisonName> names) {
  return Intercept(Verb::kPoison, queue, [&] { return behind_->FindPoison(queue, names); });
}

absl::StatusOr<int64_t> InterceptedStore::Redrive(const QueueId& queue,
                                                  absl::Span<const std::string> message_ids,
                                                  int64_t max_messages) {
  return Intercept(Verb::kPoison, queue,
                   [&] { return behind_->Redrive(queue, message_ids, max_messages); });
}

absl::StatusOr<int64_t> InterceptedStore::PurgePoison(const QueueId& queue) {
  return Intercept(Verb::kPoison, queue, [&] { return behind_->PurgePoison(queue); });
}

absl::StatusOr<int64_t> InterceptedStore::DropPoison(const QueueId& queue,
                                                     absl::Span<const std::string> message_ids) {
  return Intercept(Verb::kPoison, queue, [&] { return behind_->DropPoison(queue, message_ids); });
}

absl::StatusOr<std::vector<absl::Status>> InterceptedStore::Move(
    const QueueId& from, const QueueId& to, absl::Span<const MoveRequest> requests) {
  return Intercept(Verb::kPoison, from, [&] { return behind_->Move(from, to, requests); });
}

absl::StatusOr<absl::Duration> InterceptedStore::TimeToVisible(const QueueId& queue) {
  return Intercept(
      Verb::kStats, queue, [&] { return behind_->TimeToVisible(queue); },
      [](const auto& time) { return *time == absl::ZeroDuration(); });
}

absl::StatusOr<bool> InterceptedStore::Holds(const QueueId& queue, absl::string_view message_id) {
  return Intercept(Verb::kStats, queue, [&] { return behind_->Holds(queue, message_id); });
}

absl::StatusOr<QueueStats> InterceptedStore::Stats(const QueueId& queue) {
  return Intercept(
      Verb::kStats, queue, [&] { return behind_->Stats(queue); },
      [](const auto& stats) { return stats->ready > 0; });
}

absl::StatusOr<QueueExtent> InterceptedStore::Extent(const QueueId& queue) {
  return Intercept(
      Verb::kStats, queue, [&] { return behind_->Extent(queue); },
      [](const auto& extent) { return extent->oldest < extent->next; });
}

absl::StatusOr<std::vector<StoredMessage>> InterceptedStore::Scan(const QueueId& queue,
                                                                  uint64_t from, int max) {
  return Intercept(
      Verb::kPeek, queue, [&] { return behind_->Scan(queue, from, max); },
      [](const auto& messages) { return !messages->empty(); });
}

absl::StatusOr<uint64_t> InterceptedStore::Reclaim(const QueueId& queue) {
  return Intercept(Verb::kUpdate, queue, [&] { return behind_->Reclaim(queue); });
}

ThrottledStore::ThrottledStore(QueueStore* behind, double per_second, base::Clock* clock)
    : InterceptedStore(behind), per_second_(per_second), clock_(clock) {
  MUSTER_CHECK(per_second > 0, "per_second ", per_second);
}

absl::Status ThrottledStore::Before(Verb verb, const QueueId& queue) {
  // Commands of operators and the start of a role are few, and must never be throttled.
  if (verb == Verb::kAdministration) return absl::OkStatus();
  const absl::Duration now = clock_->Monotonic();
  const double most = std::max(1.0, per_second_);
  base::MutexLock lock(&mu_);
  Bucket& bucket = buckets_.try_emplace(queue, Bucket{most, now}).first->second;
  const double gained = absl::ToDoubleSeconds(now - bucket.filled_at) * per_second_;
  bucket = {std::min(most, bucket.tokens + gained), now};
  if (bucket.tokens >= 1) {
    bucket.tokens -= 1;
    return absl::OkStatus();
  }
  return base::Throttled(
      absl::StrCat("queue '", queue.ToString(), "' takes ", per_second_, " calls a second"),
      absl::Seconds((1 - bucket.tokens) / per_second_));
}

}  // namespace muster::queue
