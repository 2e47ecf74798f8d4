// SPDX-License-Identifier: Apache-2.0
#include "muster/stream/processor/options.h"

#include "absl/strings/str_cat.h"
#include "muster/base/status.h"
#include "muster/stream/event_stream_store.h"

namespace muster::stream::processor {
namespace {

absl::Status CheckRange(absl::string_view field, int64_t value, int64_t most) {
  if (value >= 1 && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", value, ", must be 1 to ", most));
}

absl::Status CheckPositive(absl::string_view field, absl::Duration value) {
  if (value > absl::ZeroDuration()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(field, ": must be more than 0"));
}

}  // namespace

absl::Status Validate(const ProcessorOptions& options) {
  MUSTER_RETURN_IF_ERROR(ValidateStreamName(options.stream));
  MUSTER_RETURN_IF_ERROR(base::Annotate(ValidateStreamName(options.group), "group"));
  MUSTER_RETURN_IF_ERROR(CheckRange("begin offset", options.begin.offset, INT64_MAX));
  MUSTER_RETURN_IF_ERROR(CheckRange("attempts", options.failure.attempts, 1'000'000));
  MUSTER_RETURN_IF_ERROR(CheckPositive("min_backoff", options.failure.min_backoff));
  MUSTER_RETURN_IF_ERROR(
      CheckRange("prefetch_events", options.prefetch_events, kMaxPrefetchEvents));
  MUSTER_RETURN_IF_ERROR(CheckRange("handler_threads", options.handler_threads, kMaxThreads));
  MUSTER_RETURN_IF_ERROR(CheckRange("fetch_threads", options.fetch_threads, kMaxThreads));
  MUSTER_RETURN_IF_ERROR(CheckPositive("max_wait", options.max_wait));
  MUSTER_RETURN_IF_ERROR(CheckPositive("replay_check", options.replay_check));
  return absl::OkStatus();
}

std::string GroupName(absl::string_view stream, absl::string_view group) {
  return absl::StrCat(stream, "/", group);
}

}  // namespace muster::stream::processor
