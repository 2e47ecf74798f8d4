// SPDX-License-Identifier: Apache-2.0
#include "muster/stream/event_stream_store.h"

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "muster/base/status.h"

namespace muster::stream {
namespace {

size_t SizeOf(const Properties& properties) {
  size_t size = 0;
  for (const auto& [name, value] : properties) size += name.size() + value.size();
  return size;
}

absl::Status ValidateLength(absl::string_view what, size_t size, size_t most) {
  if (size <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(what, ": ", size, " bytes, at most ", most));
}

absl::Status ValidateEvent(const NewEvent& event) {
  MUSTER_RETURN_IF_ERROR(ValidateLength("body of an event", event.body.size(), kMaxBodyBytes));
  MUSTER_RETURN_IF_ERROR(ValidateLength("key of an event", event.key.size(), kMaxKeyBytes));
  return ValidateLength("properties of an event", SizeOf(event.properties), kMaxPropertiesBytes);
}

}  // namespace

absl::Status ValidateStreamName(absl::string_view stream) {
  const bool has_only_allowed = absl::c_all_of(
      stream, [](char c) { return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '-'; });
  if (!stream.empty() && stream.size() <= kMaxNameBytes && has_only_allowed &&
      stream.front() != '-' && stream.back() != '-') {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("stream '", stream.substr(0, kMaxNameBytes),
                                                 "': 1 to ", kMaxNameBytes,
                                                 " of a-z, 0-9 and -, no dash at either end"));
}

absl::Status ValidateOptions(const StreamOptions& options) {
  if (options.partitions < 1 || options.partitions > kMaxPartitions) {
    return absl::InvalidArgumentError(
        absl::StrCat("partitions: ", options.partitions, ", 1 to ", kMaxPartitions));
  }
  if (options.retention < kMinRetention) {
    return absl::InvalidArgumentError(
        absl::StrCat("retention: ", absl::FormatDuration(options.retention), ", at least ",
                     absl::FormatDuration(kMinRetention)));
  }
  if (options.max_bytes < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_bytes: ", options.max_bytes, ", 0 for no bound, or more"));
  }
  return absl::OkStatus();
}

size_t SizeOf(const NewEvent& event) {
  return event.body.size() + event.key.size() + SizeOf(event.properties);
}

absl::Status ValidateAppend(absl::Span<const NewEvent> events) {
  if (events.empty() || events.size() > kMaxAppendEvents) {
    return absl::InvalidArgumentError(
        absl::StrCat("events of an append: ", events.size(), ", 1 to ", kMaxAppendEvents));
  }
  size_t bytes = 0;
  for (const NewEvent& event : events) {
    MUSTER_RETURN_IF_ERROR(ValidateEvent(event));
    bytes += SizeOf(event);
  }
  return ValidateLength("an append", bytes, kMaxAppendBytes);
}

absl::Status ValidateRead(int max_events) {
  if (max_events >= 1 && max_events <= kMaxReadEvents) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("events of a read: ", max_events, ", 1 to ", kMaxReadEvents));
}

absl::Status ValidateOffset(int64_t offset) {
  if (offset >= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("offset: ", offset, ", at least 1"));
}

}  // namespace muster::stream
