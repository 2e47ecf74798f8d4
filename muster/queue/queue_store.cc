#include "muster/queue/queue_store.h"

#include "absl/strings/str_cat.h"
#include "muster/base/status.h"
#include "muster/queue/limits.h"

namespace muster::queue {

std::string QueueId::ToString() const { return absl::StrCat(account, "/", name); }

absl::StatusOr<std::vector<Released>> QueueStore::ReleaseHeldBy(const std::string&,
                                                                absl::Duration) {
  return std::vector<Released>();
}

std::optional<absl::Duration> VisibilityOf(const Metadata& metadata) {
  const auto found = metadata.find(kVisibilityName);
  absl::Duration visibility;
  if (found == metadata.end() || !absl::ParseDuration(found->second, &visibility) ||
      visibility < kMinReceiveVisibility || visibility > kMaxVisibility) {
    return std::nullopt;
  }
  return visibility;
}

Metadata WithVisibility(Metadata metadata, std::optional<absl::Duration> visibility) {
  if (visibility.has_value()) {
    metadata[kVisibilityName] = absl::FormatDuration(*visibility);
  } else {
    metadata.erase(kVisibilityName);
  }
  return metadata;
}

absl::Status SetVisibility(QueueStore* store, const QueueId& queue,
                           std::optional<absl::Duration> visibility) {
  MUSTER_ASSIGN_OR_RETURN(const Metadata there, store->GetMetadata(queue));
  const Metadata wanted = WithVisibility(there, visibility);
  return wanted == there ? absl::OkStatus() : store->SetMetadata(queue, wanted);
}

}  // namespace muster::queue
