#include "muster/listener/listener_options.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "muster/base/status_macros.h"
#include "muster/queue/limits.h"

namespace muster::listener {
namespace {

absl::Status CheckRange(absl::string_view name, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("listener option ", name, " is ", value, ", must be ", low, " to ", high));
}

absl::Status CheckRange(absl::string_view name, absl::Duration value, absl::Duration low,
                        absl::Duration high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("listener option ", name, " is ", absl::FormatDuration(value), ", must be ",
                   absl::FormatDuration(low), " to ", absl::FormatDuration(high)));
}

absl::Status ValidateQueues(const ListenerOptions& options) {
  MUSTER_RETURN_IF_ERROR(
      CheckRange("partitions", static_cast<int64_t>(options.partitions.size()), 1, kMaxPartitions));
  for (const queue::QueueId& partition : options.partitions) {
    MUSTER_RETURN_IF_ERROR(queue::ValidateQueueId(partition));
  }
  return options.output_queue ? queue::ValidateQueueId(*options.output_queue) : absl::OkStatus();
}

}  // namespace

absl::Status ValidateIdleIntervals(absl::Duration minimum, absl::Duration maximum) {
  MUSTER_RETURN_IF_ERROR(
      CheckRange("maximum_idle_interval", maximum, absl::Milliseconds(1), absl::Hours(24)));
  return CheckRange("minimum_idle_interval", minimum, absl::ZeroDuration(), maximum);
}

absl::Status ValidateBatchSize(int messages, const queue::Traits& traits) {
  return CheckRange("dequeue_batch_size", messages, 1, traits.max_receive);
}

absl::Status ValidateMaxDequeueTasks(int tasks) {
  return CheckRange("max_dequeue_tasks", tasks, 1, kMaxDequeueTasks);
}

absl::Status ValidateListenerOptions(const ListenerOptions& options, const queue::Traits& traits) {
  MUSTER_RETURN_IF_ERROR(ValidateQueues(options));
  MUSTER_RETURN_IF_ERROR(ValidateBatchSize(options.dequeue_batch_size, traits));
  MUSTER_RETURN_IF_ERROR(
      ValidateIdleIntervals(options.minimum_idle_interval, options.maximum_idle_interval));
  MUSTER_RETURN_IF_ERROR(
      CheckRange("visibility", options.visibility, kMinVisibility, queue::kMaxVisibility));
  MUSTER_RETURN_IF_ERROR(CheckRange("maximum_visibility", options.maximum_visibility,
                                    kMinVisibility, queue::kMaxVisibility));
  MUSTER_RETURN_IF_ERROR(
      CheckRange("claim_horizon", options.claim_horizon, absl::ZeroDuration(), options.visibility));
  MUSTER_RETURN_IF_ERROR(
      CheckRange("settle_linger", options.settle_linger, absl::ZeroDuration(), absl::Seconds(1)));
  MUSTER_RETURN_IF_ERROR(CheckRange("safety_check_interval", options.safety_check_interval,
                                    absl::Milliseconds(1), absl::Hours(24)));
  MUSTER_RETURN_IF_ERROR(CheckRange("minimum_retry_delay", options.minimum_retry_delay,
                                    absl::Milliseconds(1), queue::kMaxVisibility));
  MUSTER_RETURN_IF_ERROR(CheckRange("maximum_retry_delay", options.maximum_retry_delay,
                                    options.minimum_retry_delay, queue::kMaxVisibility));
  MUSTER_RETURN_IF_ERROR(CheckRange("max_attempts", options.max_attempts, 1, kMaxAttemptsLimit));
  MUSTER_RETURN_IF_ERROR(ValidateMaxDequeueTasks(options.max_dequeue_tasks));
  return CheckRange("max_unsettled_messages", options.max_unsettled_messages, 1,
                    kMaxUnsettledMessages);
}

}  // namespace muster::listener
