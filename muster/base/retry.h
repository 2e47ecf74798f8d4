// SPDX-License-Identifier: Apache-2.0

// RetryPolicy: tries again what failed for a passing reason. The waits grow, because
// a fault that outlasts a retry is often an overload. The timeouts grow, because the outcome of a
// call that timed out is unknown: it may merely be slow.
//
//   absl::Status status = policy.Run(stop, [&](const RetryAttempt& attempt) {
//     return queue->Put(messages, attempt.timeout);
//   });
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/base/random.h"
#include "muster/base/status.h"

namespace muster::base {

struct RetryOptions {
  int max_attempts = 5;  // the first one counts; at least 1
  // The wait before attempt n+1 is drawn from half to all of initial × factor^(n−1), at most
  // maximum.
  absl::Duration initial_backoff = absl::Milliseconds(100);
  absl::Duration max_backoff = absl::Seconds(10);
  // The timeout of attempt n: initial × factor^(n−1), at most maximum.
  absl::Duration initial_timeout = absl::Seconds(5);
  absl::Duration max_timeout = absl::Minutes(1);
  double factor = 2;
};

struct RetryAttempt {
  int number = 1;
  absl::Duration timeout;
};

// Faults that may pass by themselves: Unavailable, ResourceExhausted (throttled), DeadlineExceeded,
// Aborted (lost a race).
bool IsTransient(const absl::Status& status);

// ResourceExhausted by a healthy service that limits its load: the caller may come back after
// `after`. The service refused the call before it did anything.
absl::Status Throttled(absl::string_view message, absl::Duration after);
// What Throttled said; nullopt for any other status.
std::optional<absl::Duration> RetryAfter(const absl::Status& status);

// Thread-safe.
class RetryPolicy {
 public:
  // `clock` is not owned.
  RetryPolicy(RetryOptions options, Clock* clock,
              UniformSource uniform = SeededUniform(RandomSeed()));

  // Calls `fn(const RetryAttempt&)`, which returns a Status or a StatusOr, until it succeeds, fails
  // for good, has been tried max_attempts times (the last error, saying so), or `stop` is requested
  // during a wait (Cancelled, naming the last error). `fn` must be safe to repeat. A throttled call
  // does not count as an attempt: the policy waits as long as the service asks, with jitter and
  // growing patience, and repeats it until `stop`.
  template <typename Fn>
  std::invoke_result_t<Fn, const RetryAttempt&> Run(const std::stop_token& stop, Fn fn) {
    for (int number = 1;; ++number) {
      auto result = RunWhileThrottled(stop, [&] { return fn({number, TimeoutOf(number)}); });
      if (result.ok()) return result;
      if (absl::Status end = WaitToRetry(number, StatusOf(result), stop); !end.ok()) return end;
    }
  }

  // Repeats `fn()` only when it was throttled, so `fn` need not be safe to repeat.
  template <typename Fn>
  std::invoke_result_t<Fn> RunWhileThrottled(const std::stop_token& stop, Fn fn) {
    for (int throttled = 1;; ++throttled) {
      auto result = fn();
      if (!RetryAfter(StatusOf(result)).has_value()) return result;
      if (absl::Status end = WaitOut(throttled, StatusOf(result), stop); !end.ok()) return end;
    }
  }

  // The same, without a way to stop it.
  template <typename Fn>
  std::invoke_result_t<Fn, const RetryAttempt&> Run(Fn fn) {
    return Run(std::stop_token(), std::move(fn));
  }

 private:
  absl::Duration TimeoutOf(int attempt) const;
  absl::Duration BackoffAfter(int attempt);
  // OK once it is time for the next attempt; otherwise what Run ends with.
  absl::Status WaitToRetry(int attempt, const absl::Status& failure, const std::stop_token& stop);
  // The same after the nth throttling in a row.
  absl::Status WaitOut(int throttled, const absl::Status& failure, const std::stop_token& stop);

  const RetryOptions options_;
  Clock* const clock_;  // not owned

  Mutex mu_;
  UniformSource uniform_ ABSL_GUARDED_BY(mu_);
};

// The wait after `failures` failures in a row, at least 1: `minimum` after the first one, twice as
// long after each further one, at most `maximum`.
absl::Duration ExponentialBackoff(int failures, absl::Duration minimum, absl::Duration maximum);

// IdleBackoff: how long a dequeue task that finds its queue empty waits before it looks again:
// interval = min(minimum + (2^idle − 1) × random[80, 120) ms, maximum).

struct IdleBackoffOptions {
  absl::Duration minimum = absl::ZeroDuration();
  absl::Duration maximum = absl::Seconds(1);
};

// Not thread-safe: each task has its own.
class IdleBackoff {
 public:
  explicit IdleBackoff(IdleBackoffOptions options,
                       UniformSource uniform = SeededUniform(RandomSeed()));

  // The wait after `idle_count` empty looks in a row; never below zero nor above the maximum,
  // however long the queue has been idle.
  absl::Duration Interval(int idle_count);

 private:
  const IdleBackoffOptions options_;
  UniformSource uniform_;
};

}  // namespace muster::base
