// SPDX-License-Identifier: Apache-2.0
#include "muster/base/retry.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace muster::base {

namespace {

// initial × factor^(attempt−1), at most `maximum`. A power beyond a double's range is infinite, and
// so is the Duration made of it: the maximum holds for any number of attempts.
absl::Duration Grown(absl::Duration initial, double factor, int attempt, absl::Duration maximum) {
  return std::min(initial * std::pow(factor, attempt - 1), maximum);
}

constexpr char kRetryAfter[] = "muster/retry-after-us";

absl::Status StoppedAfter(const absl::Status& failure) {
  return absl::CancelledError(
      absl::StrCat("stopped before another attempt; the last one: ", failure.ToString()));
}

}  // namespace

absl::Duration ExponentialBackoff(int failures, absl::Duration minimum, absl::Duration maximum) {
  return Grown(minimum, 2, failures, maximum);
}

absl::Status Throttled(absl::string_view message, absl::Duration after) {
  absl::Status status = absl::ResourceExhaustedError(message);
  const std::string us = absl::StrCat(absl::ToInt64Microseconds(after));
  status.SetPayload(kRetryAfter, absl::Cord(absl::string_view(us)));
  return status;
}

std::optional<absl::Duration> RetryAfter(const absl::Status& status) {
  if (!absl::IsResourceExhausted(status)) return std::nullopt;
  const auto payload = status.GetPayload(kRetryAfter);
  int64_t us = 0;
  if (!payload.has_value() || !absl::SimpleAtoi(std::string(*payload), &us)) return std::nullopt;
  return absl::Microseconds(us);
}

bool IsTransient(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kAborted:
      return true;
    default:
      return false;
  }
}

RetryPolicy::RetryPolicy(RetryOptions options, Clock* clock, UniformSource uniform)
    : options_(options), clock_(clock), uniform_(std::move(uniform)) {}

absl::Duration RetryPolicy::TimeoutOf(int attempt) const {
  return Grown(options_.initial_timeout, options_.factor, attempt, options_.max_timeout);
}

absl::Duration RetryPolicy::BackoffAfter(int attempt) {
  const absl::Duration longest =
      Grown(options_.initial_backoff, options_.factor, attempt, options_.max_backoff);
  MutexLock lock(&mu_);
  return longest * (0.5 + uniform_() / 2);
}

absl::Status RetryPolicy::WaitToRetry(int attempt, const absl::Status& failure,
                                      const std::stop_token& stop) {
  if (!IsTransient(failure)) return failure;
  if (attempt >= options_.max_attempts) {
    return Annotate(failure, absl::StrCat("gave up after attempt ", attempt));
  }
  if (!SleepUnlessStopped(clock_, BackoffAfter(attempt), stop)) return StoppedAfter(failure);
  return absl::OkStatus();
}

// Never sooner than the service asked for. With jitter, so that calls refused together do not come
// back together; and longer each time, because there may be more callers than the service knew of.
absl::Status RetryPolicy::WaitOut(int throttled, const absl::Status& failure,
                                  const std::stop_token& stop) {
  const absl::Duration after = *RetryAfter(failure);
  const absl::Duration longest = std::min(
      Grown(after, options_.factor, throttled, options_.max_backoff), after + options_.max_backoff);
  double share;
  {
    MutexLock lock(&mu_);
    share = uniform_();
  }
  if (!SleepUnlessStopped(clock_, after + longest * share, stop)) return StoppedAfter(failure);
  return absl::OkStatus();
}

namespace {

constexpr double kShortestUnitMs = 80;
constexpr double kLongestUnitMs = 120;

// 2^40 × 80 ms is 2,800 years: more than any maximum, and far from the end of a double or a
// Duration. The original computed (int)(2^idle × 100), which turns negative after 25 idle looks.
constexpr int kMaxExponent = 40;

}  // namespace

IdleBackoff::IdleBackoff(IdleBackoffOptions options, UniformSource uniform)
    : options_(options), uniform_(std::move(uniform)) {}

absl::Duration IdleBackoff::Interval(int idle_count) {
  const int exponent = std::clamp(idle_count, 0, kMaxExponent);
  const double unit_ms = kShortestUnitMs + uniform_() * (kLongestUnitMs - kShortestUnitMs);
  const absl::Duration delta = absl::Milliseconds((std::ldexp(1.0, exponent) - 1) * unit_ms);
  return std::clamp(options_.minimum + delta, absl::ZeroDuration(),
                    std::max(options_.maximum, absl::ZeroDuration()));
}

}  // namespace muster::base
