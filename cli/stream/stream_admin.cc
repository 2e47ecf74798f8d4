// SPDX-License-Identifier: Apache-2.0
#include "cli/stream/stream_admin.h"

#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/server/options.h"
#include "muster/backend/backend.h"
#include "muster/base/status.h"
#include "muster/stream/processor/replay.h"
#include "muster/stream/remote/remote_event_stream_store.h"
#include "muster/v1/stream_service.grpc.pb.h"

namespace muster::cli {
namespace {

class LocalStreamAdmin final : public StreamAdmin {
 public:
  LocalStreamAdmin(std::string data_dir, std::unique_ptr<stream::EventStreamStore> events)
      : data_dir_(std::move(data_dir)), events_(std::move(events)) {}

  stream::EventStreamStore* events() override { return events_.get(); }

  absl::StatusOr<int64_t> Replay(const PartitionName& partition, const std::string& group,
                                 int64_t offset) override {
    MUSTER_ASSIGN_OR_RETURN(const auto sync,
                            backend::OpenSyncStore(backend::DataDirUrls(data_dir_).sync));
    return stream::processor::Replay({.events = events_.get(), .sync = sync.get()},
                                     partition.stream, group, partition.partition, offset);
  }

  absl::Status Explained(const absl::Status& status) const override { return status; }

 private:
  const std::string data_dir_;
  const std::unique_ptr<stream::EventStreamStore> events_;
};

class RemoteStreamAdmin final : public StreamAdmin {
 public:
  explicit RemoteStreamAdmin(std::unique_ptr<MeshClient> mesh)
      : mesh_(std::move(mesh)),
        events_(mesh_->initiator(), mesh_->options().timeout.value_or(rpc::kDefaultCallTimeout)) {}

  stream::EventStreamStore* events() override { return &events_; }

  absl::StatusOr<int64_t> Replay(const PartitionName& partition, const std::string& group,
                                 int64_t offset) override {
    v1::ReplayPartitionRequest request;
    request.set_stream(partition.stream);
    request.set_partition(partition.partition);
    request.set_group(group);
    request.set_offset(offset);
    MUSTER_ASSIGN_OR_RETURN(const auto response,
                            mesh_->Call(&v1::StreamService::Stub::ReplayPartition, request));
    return response.offset();
  }

  absl::Status Explained(const absl::Status& status) const override {
    return mesh_->Explained(status);
  }

 private:
  const std::unique_ptr<MeshClient> mesh_;
  stream::remote::RemoteEventStreamStore events_;
};

absl::StatusOr<std::unique_ptr<stream::EventStreamStore>> OpenLocally(const std::string& data_dir,
                                                                      Access access,
                                                                      base::Clock* clock) {
  if (access == Access::kMake) {
    std::error_code error;
    std::filesystem::create_directories(data_dir, error);
    if (error) return absl::InvalidArgumentError(absl::StrCat(data_dir, ": ", error.message()));
  } else {
    MUSTER_RETURN_IF_ERROR(RequireDataDir(data_dir));
  }
  const std::string url = backend::DataDirUrls(data_dir).stream;
  if (access == Access::kMake) {
    return backend::OpenEventStreamStore(url, backend::Mode::kReadWrite, clock);
  }
  // Nothing is created where nothing is.
  absl::StatusOr<std::unique_ptr<stream::EventStreamStore>> look =
      backend::OpenEventStreamStore(url, backend::Mode::kReadOnly, clock);
  if (!look.ok() || access == Access::kLook) return look;
  look->reset();
  return backend::OpenEventStreamStore(url, backend::Mode::kReadWrite, clock);
}

}  // namespace

absl::StatusOr<PartitionName> ParsePartition(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, '/');
  PartitionName name;
  if (parts.size() != 2 || !absl::SimpleAtoi(parts[1], &name.partition) || name.partition < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", text, "' is no partition of a stream: STREAM/PARTITION, for instance homes/3"));
  }
  name.stream = parts[0];
  MUSTER_RETURN_IF_ERROR(stream::ValidateStreamName(name.stream));
  return name;
}

absl::StatusOr<std::unique_ptr<StreamAdmin>> OpenStreamAdmin(const CommonOptions& options,
                                                             Access access,
                                                             const Environment& environment) {
  if (options.server.named()) {
    MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<MeshClient> mesh, MeshClient::Open(options.server));
    return std::make_unique<RemoteStreamAdmin>(std::move(mesh));
  }
  MUSTER_ASSIGN_OR_RETURN(auto events, OpenLocally(options.data_dir, access, environment.clock));
  return std::make_unique<LocalStreamAdmin>(options.data_dir, std::move(events));
}

}  // namespace muster::cli
