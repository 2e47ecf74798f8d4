#include "muster/report/remote/found_desk.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"

namespace muster::report::remote {

DiscoveringReportClient::DiscoveringReportClient(ControllerAddresses controllers,
                                                 rpc::ChannelOptions channel_options,
                                                 absl::Duration timeout)
    : controllers_(std::move(controllers)),
      channel_options_(std::move(channel_options)),
      timeout_(timeout) {}

DiscoveringReportClient::~DiscoveringReportClient() = default;

absl::StatusOr<std::shared_ptr<RemoteReportClient>> DiscoveringReportClient::Find() {
  const std::vector<std::string> known = controllers_();
  base::MutexLock lock(&mu_);
  if (known.empty()) return absl::UnavailableError("no controller is known here");
  if (client_ == nullptr || known.front() != address_) {
    const auto channel = rpc::OpenChannel(known.front(), channel_options_);
    if (!channel.ok()) {
      return absl::UnavailableError(
          absl::StrCat("controller ", known.front(), ": ", channel.status().message()));
    }
    address_ = known.front();
    client_ = std::make_shared<RemoteReportClient>(*channel, timeout_);
  }
  return client_;
}

absl::StatusOr<report::Progress> DiscoveringReportClient::RegisterBatch(
    const report::BatchShape& shape) {
  MUSTER_ASSIGN_OR_RETURN(const std::shared_ptr<RemoteReportClient> client, Find());
  return client->RegisterBatch(shape);
}

absl::StatusOr<report::Progress> DiscoveringReportClient::GetProgress(uint64_t batch) {
  MUSTER_ASSIGN_OR_RETURN(const std::shared_ptr<RemoteReportClient> client, Find());
  return client->GetProgress(batch);
}

absl::StatusOr<uint64_t> DiscoveringReportClient::HighestBatch() {
  MUSTER_ASSIGN_OR_RETURN(const std::shared_ptr<RemoteReportClient> client, Find());
  return client->HighestBatch();
}

absl::StatusOr<std::vector<uint64_t>> DiscoveringReportClient::UncountedItems(uint64_t batch,
                                                                              uint64_t item_count,
                                                                              uint64_t from,
                                                                              size_t max) {
  MUSTER_ASSIGN_OR_RETURN(const std::shared_ptr<RemoteReportClient> client, Find());
  return client->UncountedItems(batch, item_count, from, max);
}

absl::Status DiscoveringReportClient::CheckCompletion(uint64_t batch) {
  MUSTER_ASSIGN_OR_RETURN(const std::shared_ptr<RemoteReportClient> client, Find());
  return client->CheckCompletion(batch);
}

absl::StatusOr<report::StoredReceipt> DiscoveringReportClient::GetReceipt(uint64_t batch) {
  MUSTER_ASSIGN_OR_RETURN(const std::shared_ptr<RemoteReportClient> client, Find());
  return client->GetReceipt(batch);
}

absl::StatusOr<report::Tally> DiscoveringReportClient::GetTally(uint64_t batch) {
  MUSTER_ASSIGN_OR_RETURN(const std::shared_ptr<RemoteReportClient> client, Find());
  return client->GetTally(batch);
}

absl::Status DiscoveringReportClient::ReopenDeadLettered(uint64_t batch,
                                                         absl::Span<const uint64_t> items) {
  MUSTER_ASSIGN_OR_RETURN(const std::shared_ptr<RemoteReportClient> client, Find());
  return client->ReopenDeadLettered(batch, items);
}

}  // namespace muster::report::remote
