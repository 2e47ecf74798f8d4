#include "muster/report_remote/found_desk.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"

namespace muster::report_remote {

FoundDesk::FoundDesk(KnownControllers controllers, rpc::ChannelOptions channel_options,
                     absl::Duration timeout)
    : controllers_(std::move(controllers)),
      channel_options_(std::move(channel_options)),
      timeout_(timeout) {}

FoundDesk::~FoundDesk() = default;

absl::StatusOr<std::shared_ptr<RemoteDesk>> FoundDesk::Find() {
  const std::vector<std::string> known = controllers_();
  base::MutexLock lock(&mu_);
  if (known.empty()) return absl::UnavailableError("no controller is known here");
  if (desk_ == nullptr || known.front() != address_) {
    const auto channel = rpc::OpenChannel(known.front(), channel_options_);
    if (!channel.ok()) {
      return absl::UnavailableError(
          absl::StrCat("controller ", known.front(), ": ", channel.status().message()));
    }
    address_ = known.front();
    desk_ = std::make_shared<RemoteDesk>(*channel, timeout_);
  }
  return desk_;
}

absl::StatusOr<report::Progress> FoundDesk::RegisterBatch(const report::BatchShape& shape) {
  MUSTER_ASSIGN_OR_RETURN(const std::shared_ptr<RemoteDesk> desk, Find());
  return desk->RegisterBatch(shape);
}

absl::StatusOr<report::Progress> FoundDesk::GetProgress(uint64_t batch) {
  MUSTER_ASSIGN_OR_RETURN(const std::shared_ptr<RemoteDesk> desk, Find());
  return desk->GetProgress(batch);
}

absl::StatusOr<uint64_t> FoundDesk::HighestBatch() {
  MUSTER_ASSIGN_OR_RETURN(const std::shared_ptr<RemoteDesk> desk, Find());
  return desk->HighestBatch();
}

absl::StatusOr<std::vector<uint64_t>> FoundDesk::UncountedItems(uint64_t batch, uint64_t item_count,
                                                                uint64_t from, size_t max) {
  MUSTER_ASSIGN_OR_RETURN(const std::shared_ptr<RemoteDesk> desk, Find());
  return desk->UncountedItems(batch, item_count, from, max);
}

absl::Status FoundDesk::CheckCompletion(uint64_t batch) {
  MUSTER_ASSIGN_OR_RETURN(const std::shared_ptr<RemoteDesk> desk, Find());
  return desk->CheckCompletion(batch);
}

absl::StatusOr<report::StoredReceipt> FoundDesk::GetReceipt(uint64_t batch) {
  MUSTER_ASSIGN_OR_RETURN(const std::shared_ptr<RemoteDesk> desk, Find());
  return desk->GetReceipt(batch);
}

absl::StatusOr<report::Tally> FoundDesk::GetTally(uint64_t batch) {
  MUSTER_ASSIGN_OR_RETURN(const std::shared_ptr<RemoteDesk> desk, Find());
  return desk->GetTally(batch);
}

absl::Status FoundDesk::ReopenDeadLettered(uint64_t batch, absl::Span<const uint64_t> items) {
  MUSTER_ASSIGN_OR_RETURN(const std::shared_ptr<RemoteDesk> desk, Find());
  return desk->ReopenDeadLettered(batch, items);
}

}  // namespace muster::report_remote
