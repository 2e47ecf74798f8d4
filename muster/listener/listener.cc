// SPDX-License-Identifier: Apache-2.0
#include "muster/listener/listener.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/status.h"
#include "muster/listener/elastic_listener.h"

namespace muster::listener {

namespace {

struct Step {
  int64_t min_depth;
  int tasks;
};

int TasksFor(const std::vector<Step>& steps, int64_t depth) {
  const auto above = std::upper_bound(steps.begin(), steps.end(), depth,
                                      [](int64_t d, const Step& s) { return d < s.min_depth; });
  return above == steps.begin() ? kFallbackTasks : std::prev(above)->tasks;
}

WorkRule RuleOf(std::vector<Step> steps) {
  return [steps = std::move(steps)](int64_t depth) { return TasksFor(steps, depth); };
}

absl::StatusOr<Step> ParseStep(absl::string_view text) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, ':');
  Step step;
  if (parts.size() != 2 || !absl::SimpleAtoi(parts[0], &step.min_depth) ||
      !absl::SimpleAtoi(parts[1], &step.tasks)) {
    return absl::InvalidArgumentError(
        absl::StrCat("work rule step '", text, "' is not min_depth:tasks"));
  }
  if (step.tasks < 1 || step.tasks > kMaxRuleTasks) {
    return absl::InvalidArgumentError(
        absl::StrCat("work rule step '", text, "': tasks must be 1 to ", kMaxRuleTasks));
  }
  return step;
}

}  // namespace

WorkRule DefaultWorkRule() { return RuleOf({{0, 10}, {100, 50}, {1000, 100}}); }

absl::StatusOr<WorkRule> ParseWorkRule(absl::string_view text) {
  std::vector<Step> steps;
  for (absl::string_view piece : absl::StrSplit(text, ',')) {
    MUSTER_ASSIGN_OR_RETURN(const Step step, ParseStep(absl::StripAsciiWhitespace(piece)));
    const bool ascending =
        steps.empty() ? step.min_depth == 0 : step.min_depth > steps.back().min_depth;
    if (!ascending) {
      return absl::InvalidArgumentError(
          absl::StrCat("work rule step '", piece, "': depths must start at 0 and ascend"));
    }
    steps.push_back(step);
    if (steps.size() > kMaxRuleSteps) {
      return absl::InvalidArgumentError(
          absl::StrCat("work rule has more than ", kMaxRuleSteps, " steps"));
    }
  }
  return RuleOf(std::move(steps));
}

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

absl::StatusOr<std::unique_ptr<QueueListener>> QueueListener::Create(
    ListenerOptions options, ListenerEvents events, SubscriberFactory subscribers,
    queue::QueueStore* store, bus::TriggerBus* bus, base::Clock* clock) {
  MUSTER_RETURN_IF_ERROR(ValidateListenerOptions(options, store->traits()));
  if (!subscribers) return absl::InvalidArgumentError("a listener needs a subscriber factory");
  if (!options.work_rule) options.work_rule = DefaultWorkRule();
  return std::make_unique<ElasticListener>(std::move(options), std::move(events),
                                           std::move(subscribers), store, bus, clock);
}

}  // namespace muster::listener
