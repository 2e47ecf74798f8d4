// SPDX-License-Identifier: Apache-2.0

// StreamAdmin: the event streams of a data directory or of a server, for `muster stream`.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "cli/output/environment.h"
#include "cli/server/mesh_client.h"
#include "muster/stream/event_stream_store.h"

namespace muster::cli {

// A partition of a stream, as people name it: "STREAM/PARTITION".
struct PartitionName {
  std::string stream;
  int partition = 0;
};
// InvalidArgument: it is none.
absl::StatusOr<PartitionName> ParsePartition(const std::string& text);

enum class Access {
  kLook,    // nothing is changed, nor made
  kChange,  // of streams that are there
  kMake,    // the data directory is made if there is none
};

// Statuses are the store's, or the service's, for people. Not thread-safe.
class StreamAdmin {
 public:
  virtual ~StreamAdmin() = default;

  virtual stream::EventStreamStore* events() = 0;
  // As stream::processor::Replay.
  virtual absl::StatusOr<int64_t> Replay(const PartitionName& partition, const std::string& group,
                                         int64_t offset) = 0;
  // What a status of `events` means, for people.
  virtual absl::Status Explained(const absl::Status& status) const = 0;
};

// The streams of the data directory, or of the server, that `options` name.
absl::StatusOr<std::unique_ptr<StreamAdmin>> OpenStreamAdmin(const CommonOptions& options,
                                                             Access access,
                                                             const Environment& environment);

}  // namespace muster::cli
