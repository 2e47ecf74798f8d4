// SPDX-License-Identifier: Apache-2.0

// Event streams as proto, and back.
#pragma once

#include "absl/status/statusor.h"
#include "muster/stream/event_stream_store.h"
#include "muster/v1/stream_service.pb.h"

namespace muster::stream {

v1::EventStreamOptions ToProto(const StreamOptions& options);
// InvalidArgument: a limit is broken.
absl::StatusOr<StreamOptions> FromProto(const v1::EventStreamOptions& options);

v1::StreamPartition ToProto(const PartitionExtent& extent);
PartitionExtent FromProto(const v1::StreamPartition& extent);

// The name of a property that is not UTF-8 is escaped.
v1::StreamEvent ToProto(Event event);
v1::StreamEvent ToProto(NewEvent event);
Event FromProto(v1::StreamEvent event);
NewEvent NewFromProto(v1::StreamEvent event);

}  // namespace muster::stream
