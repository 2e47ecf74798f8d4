// SPDX-License-Identifier: Apache-2.0
#include "muster/queue/queue_store.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "muster/base/status.h"
#include "muster/queue/limits.h"

namespace muster::queue {

std::string QueueId::ToString() const { return absl::StrCat(account, "/", name); }

std::vector<absl::StatusOr<std::vector<PutResult>>> QueueStore::PutEach(
    absl::Span<const ForQueue<NewMessage>> puts) {
  std::vector<absl::StatusOr<std::vector<PutResult>>> results;
  results.reserve(puts.size());
  for (const auto& [queue, messages] : puts) results.push_back(Put(queue, messages));
  return results;
}

std::vector<absl::StatusOr<std::vector<absl::Status>>> QueueStore::DeleteEach(
    absl::Span<const ForQueue<Receipt>> deletes) {
  std::vector<absl::StatusOr<std::vector<absl::Status>>> results;
  results.reserve(deletes.size());
  for (const auto& [queue, receipts] : deletes) results.push_back(Delete(queue, receipts));
  return results;
}

absl::StatusOr<std::vector<Released>> QueueStore::ReleaseHeldBy(const std::string&,
                                                                absl::Duration) {
  return std::vector<Released>();
}

// Engines that can wait keep the callback, so it comes by value.
// NOLINTBEGIN(performance-unnecessary-value-param)
absl::StatusOr<std::unique_ptr<QueueStore::Wait>> QueueStore::AwaitMessage(const QueueId&,
                                                                           absl::Duration,
                                                                           TakeMessage) {
  return absl::UnimplementedError("this engine cannot wait for messages");
}
// NOLINTEND(performance-unnecessary-value-param)

absl::StatusOr<std::vector<absl::Status>> QueueStore::Move(const QueueId&, const QueueId&,
                                                           absl::Span<const MoveRequest>) {
  return absl::UnimplementedError("this engine cannot move messages between queues");
}

absl::StatusOr<absl::Duration> QueueStore::TimeToVisible(const QueueId&) {
  return absl::UnimplementedError("this engine cannot tell when a message becomes visible");
}

absl::StatusOr<bool> QueueStore::Holds(const QueueId&, absl::string_view) {
  return absl::UnimplementedError("this engine cannot look a message up by its id");
}

namespace {

// A value under this name in any case.
template <typename AnyMetadata>
auto FindIn(AnyMetadata& metadata, absl::string_view name) {
  return std::find_if(metadata.begin(), metadata.end(), [name](const auto& pair) {
    return absl::EqualsIgnoreCase(pair.first, name);
  });
}

}  // namespace

std::optional<absl::Duration> DedupWindowOf(const Metadata& metadata) {
  const auto found = FindIn(metadata, kDedupWindowName);
  int64_t seconds = 0;
  if (found == metadata.end() || !absl::SimpleAtoi(found->second, &seconds) || seconds < 1 ||
      seconds > absl::ToInt64Seconds(kMaxDedupWindow)) {
    return std::nullopt;
  }
  return absl::Seconds(seconds);
}

std::optional<absl::Duration> VisibilityOf(const Metadata& metadata) {
  const auto found = FindIn(metadata, kVisibilityName);
  absl::Duration visibility;
  if (found == metadata.end() || !absl::ParseDuration(found->second, &visibility) ||
      visibility < kMinReceiveVisibility || visibility > kMaxVisibility) {
    return std::nullopt;
  }
  return visibility;
}

Metadata WithVisibility(Metadata metadata, std::optional<absl::Duration> visibility) {
  for (auto there = FindIn(metadata, kVisibilityName); there != metadata.end();
       there = FindIn(metadata, kVisibilityName)) {
    metadata.erase(there);
  }
  if (visibility.has_value()) metadata[kVisibilityName] = absl::FormatDuration(*visibility);
  return metadata;
}

absl::Status SetVisibility(QueueStore* store, const QueueId& queue,
                           std::optional<absl::Duration> visibility) {
  MUSTER_ASSIGN_OR_RETURN(const Metadata there, store->GetMetadata(queue));
  const Metadata wanted = WithVisibility(there, visibility);
  return wanted == there ? absl::OkStatus() : store->SetMetadata(queue, wanted);
}

}  // namespace muster::queue
