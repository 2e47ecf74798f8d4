// SPDX-License-Identifier: Apache-2.0
#include "muster/stream/processor/replay.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "muster/base/status.h"
#include "muster/partition/checkpoint_store.h"
#include "muster/partition/partition_admin.h"
#include "muster/stream/processor/options.h"

namespace muster::stream::processor {

absl::StatusOr<int64_t> Replay(const ProcessorStores& stores, absl::string_view stream,
                               absl::string_view group, int partition, int64_t offset) {
  MUSTER_RETURN_IF_ERROR(ValidateStreamName(stream));
  MUSTER_RETURN_IF_ERROR(base::Annotate(ValidateStreamName(group), "group"));
  MUSTER_ASSIGN_OR_RETURN(const PartitionExtent extent, stores.events->Extent(stream, partition));
  const int64_t place = offset == 0 ? extent.first : offset;
  if (place < extent.first || place > extent.next) {
    return absl::OutOfRangeError(
        absl::StrCat("partition ", partition, " of stream ", stream, " keeps the offsets from ",
                     extent.first, " on, and its end is ", extent.next, ", not ", place));
  }
  // The name may be one that no processor has: what is set for it must be found, and removed.
  const std::string name = GroupName(stream, group);
  MUSTER_ASSIGN_OR_RETURN(const StreamOptions options, stores.events->Describe(stream));
  MUSTER_RETURN_IF_ERROR(
      partition::PartitionAdmin(stores.sync).Introduce(name, options.partitions));
  partition::CheckpointStore checkpoints(stores.sync, name);
  MUSTER_RETURN_IF_ERROR(checkpoints.Replay(partition, place, place - 1, extent.incarnation));
  return place;
}

}  // namespace muster::stream::processor
