// SPDX-License-Identifier: Apache-2.0
#include "muster/stream/stream_proto.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "muster/base/proto_time.h"
#include "muster/base/status.h"
#include "muster/base/text.h"

namespace muster::stream {
namespace {

Properties TakeProperties(v1::StreamEvent* event) {
  Properties properties;
  for (auto& [name, value] : *event->mutable_properties()) {
    properties.emplace(name, std::move(value));
  }
  return properties;
}

void SetProperties(const Properties& properties, v1::StreamEvent* event) {
  for (const auto& [name, value] : properties) {
    // protobuf cannot parse a string field that is not UTF-8.
    const std::string shown = base::IsValidUtf8(name) ? name : absl::CHexEscape(name);
    (*event->mutable_properties())[shown] = value;
  }
}

}  // namespace

v1::EventStreamOptions ToProto(const StreamOptions& options) {
  v1::EventStreamOptions proto;
  proto.set_partitions(options.partitions);
  if (options.retention != absl::InfiniteDuration()) {
    *proto.mutable_retention() = base::ToProto(options.retention);
  }
  proto.set_max_bytes(options.max_bytes);
  return proto;
}

absl::StatusOr<StreamOptions> FromProto(const v1::EventStreamOptions& proto) {
  StreamOptions options;
  options.partitions = proto.partitions();
  options.retention =
      proto.has_retention() ? base::FromProto(proto.retention()) : absl::InfiniteDuration();
  options.max_bytes = proto.max_bytes();
  MUSTER_RETURN_IF_ERROR(ValidateOptions(options));
  return options;
}

v1::StreamPartition ToProto(const PartitionExtent& extent) {
  v1::StreamPartition proto;
  proto.set_first(extent.first);
  proto.set_next(extent.next);
  proto.set_incarnation(extent.incarnation);
  if (extent.last_appended != absl::InfinitePast()) {
    *proto.mutable_last_appended() = base::ToProto(extent.last_appended);
  }
  return proto;
}

PartitionExtent FromProto(const v1::StreamPartition& proto) {
  PartitionExtent extent{.first = proto.first(), .next = proto.next()};
  if (proto.has_last_appended()) extent.last_appended = base::FromProto(proto.last_appended());
  extent.incarnation = proto.incarnation();
  return extent;
}

v1::StreamEvent ToProto(Event event) {
  v1::StreamEvent proto = ToProto(NewEvent{.key = std::move(event.key),
                                           .body = std::move(event.body),
                                           .properties = std::move(event.properties)});
  proto.set_offset(event.offset);
  *proto.mutable_appended() = base::ToProto(event.appended);
  return proto;
}

v1::StreamEvent ToProto(NewEvent event) {
  v1::StreamEvent proto;
  proto.set_key(std::move(event.key));
  proto.set_body(std::move(event.body));
  SetProperties(event.properties, &proto);
  return proto;
}

Event FromProto(v1::StreamEvent proto) {
  Event event{.offset = proto.offset(), .appended = base::FromProto(proto.appended())};
  NewEvent content = NewFromProto(std::move(proto));
  event.key = std::move(content.key);
  event.body = std::move(content.body);
  event.properties = std::move(content.properties);
  return event;
}

NewEvent NewFromProto(v1::StreamEvent proto) {
  return {.key = std::move(*proto.mutable_key()),
          .body = std::move(*proto.mutable_body()),
          .properties = TakeProperties(&proto)};
}

}  // namespace muster::stream
