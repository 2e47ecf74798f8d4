// SPDX-License-Identifier: Apache-2.0

// RemoteEventStreamStore: the event streams that an initiator serves (StreamService), for programs
// that do not reach their engine.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "grpcpp/channel.h"
#include "muster/rpc/limits.h"
#include "muster/stream/event_stream_store.h"
#include "muster/v1/stream_service.grpc.pb.h"

namespace muster::stream::remote {

// Thread-safe. Statuses are the service's; Unavailable and DeadlineExceeded, too, if it does not
// answer. An append of more than 3 MiB is sent in pieces, so that after an error only the first of
// them may have been appended. Each read is a call, so a reader that reads much is slower than one
// of the engine.
class RemoteEventStreamStore final : public EventStreamStore {
 public:
  // Each call ends after `timeout`, and a read that waits after its wait and `timeout`.
  explicit RemoteEventStreamStore(const std::shared_ptr<grpc::Channel>& channel,
                                  absl::Duration timeout = rpc::kDefaultCallTimeout);

  absl::Status Create(absl::string_view stream, const StreamOptions& options) override;
  absl::Status Delete(absl::string_view stream) override;
  absl::StatusOr<std::vector<std::string>> List() override;
  absl::StatusOr<StreamOptions> Describe(absl::string_view stream) override;
  absl::StatusOr<PartitionExtent> Extent(absl::string_view stream, int partition) override;
  absl::StatusOr<int64_t> Append(absl::string_view stream, int partition,
                                 absl::Span<const NewEvent> events) override;
  // Connects with the first Next, which is NotFound if there is no such partition.
  absl::StatusOr<std::unique_ptr<PartitionReader>> OpenReader(absl::string_view stream,
                                                              int partition,
                                                              int64_t offset) override;

 private:
  class Reader;

  absl::StatusOr<v1::GetStreamResponse> GetStream(absl::string_view stream);

  const std::unique_ptr<v1::StreamService::Stub> stub_;
  const absl::Duration timeout_;
};

}  // namespace muster::stream::remote
