// SPDX-License-Identifier: Apache-2.0
#include "muster/listener/verdict.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/retry.h"
#include "muster/base/status.h"
#include "muster/listener/listener.h"
#include "muster/queue/limits.h"

namespace muster::listener {
namespace {

using queue::DeadLetterKind;

// Short at first: half of a fleet may fit, so the next listener that looks probably does. Long in
// the end: possibly no listener fits for days, and those that look have other work.
constexpr absl::Duration kShortestAway = absl::Milliseconds(250);
constexpr absl::Duration kLongestAway = absl::Seconds(25);

// Spreads delays, so that the looks of different listeners do not keep in step.
double Jitter(double uniform) { return 0.8 + 0.4 * uniform; }

Verdict GiveBack(absl::Duration delay, bool begun, bool refund,
                 int64_t ListenerCounters::*counter) {
  Verdict verdict;
  verdict.action = Verdict::Action::kGiveBack;
  verdict.delay = std::min(delay, queue::kMaxVisibility);
  // A message that did not begin stays marked as a suspect.
  verdict.attempt_ended = begun;
  verdict.refund_attempt = begun && refund;
  verdict.counter = counter;
  return verdict;
}

Verdict GiveUp(DeadLetterKind kind, std::string why) {
  Verdict verdict;
  verdict.action = Verdict::Action::kDeadLetter;
  verdict.why = std::move(why);
  verdict.kind = kind;
  verdict.counter = &ListenerCounters::dead_letters;
  return verdict;
}

Verdict JudgeRetry(Settlement settlement, int attempts, bool begun, const VerdictRules& rules,
                   double uniform) {
  if (settlement.kind == Settlement::Kind::kUnset && settlement.why.empty()) {
    settlement.why = "the handler gave no outcome";
  }
  if (begun && attempts >= rules.max_attempts) {
    return GiveUp(DeadLetterKind::kAttempts,
                  absl::StrCat("attempt ", attempts, " of ", rules.max_attempts, " failed",
                               settlement.why.empty() ? "" : ": ", settlement.why));
  }
  const absl::Duration delay = settlement.delay > absl::ZeroDuration()
                                   ? settlement.delay
                                   : RetryDelay(rules, attempts, uniform);
  Verdict verdict = GiveBack(delay, begun, false, &ListenerCounters::messages_retried);
  verdict.why = std::move(settlement.why);
  return verdict;
}

Verdict JudgeDefer(Settlement settlement, bool begun, const VerdictRules& rules) {
  Verdict verdict = GiveBack(std::max(settlement.delay, rules.minimum_retry_delay), begun, true,
                             &ListenerCounters::messages_deferred);
  verdict.wanted = std::move(settlement.wanted);
  // Otherwise the store would extend the lease of a message that did not begin.
  if (!verdict.wanted.empty()) verdict.attempt_ended = true;
  return verdict;
}

Verdict JudgeOk(Settlement settlement, const VerdictRules& rules) {
  if (absl::Status status = CheckOutputs(settlement.outputs, rules); !status.ok()) {
    return GiveUp(DeadLetterKind::kOutput,
                  absl::StrCat("its output cannot be queued: ", status.message()));
  }
  Verdict verdict;
  verdict.action = Verdict::Action::kDelete;
  verdict.outputs = std::move(settlement.outputs);
  return verdict;
}

}  // namespace

VerdictRules RulesOf(const ListenerOptions& options) {
  return {.max_attempts = options.max_attempts,
          .minimum_retry_delay = options.minimum_retry_delay,
          .maximum_retry_delay = options.maximum_retry_delay,
          .has_output_queue = options.output_queue.has_value()};
}

absl::Duration RetryDelay(const VerdictRules& rules, int attempts, double uniform) {
  const int doublings = std::clamp(attempts - 1, 0, 62);
  const double factor = std::ldexp(1.0, doublings) * Jitter(uniform);
  return std::min(rules.minimum_retry_delay * factor, rules.maximum_retry_delay);
}

absl::Duration DelayForOthers(int dequeue_count, double uniform) {
  return base::ExponentialBackoff(std::max(dequeue_count, 1), kShortestAway, kLongestAway) *
         Jitter(uniform);
}

Verdict Judge(Settlement settlement, int attempts, bool begun, const VerdictRules& rules,
              double uniform) {
  switch (settlement.kind) {
    case Settlement::Kind::kOk:
      return JudgeOk(std::move(settlement), rules);
    case Settlement::Kind::kDead:
      return GiveUp(DeadLetterKind::kRefused, std::move(settlement.why));
    case Settlement::Kind::kDefer:
      return JudgeDefer(std::move(settlement), begun, rules);
    case Settlement::Kind::kRelease:
      return GiveBack(absl::ZeroDuration(), begun, true, &ListenerCounters::messages_released);
    case Settlement::Kind::kUnset:
    case Settlement::Kind::kRetry:
      break;
  }
  return JudgeRetry(std::move(settlement), attempts, begun, rules, uniform);
}

Verdict Refunded(Verdict verdict) {
  verdict.attempt_ended = verdict.refund_attempt = verdict.action == Verdict::Action::kGiveBack;
  return verdict;
}

bool IsSpent(const queue::Message& message, const VerdictRules& rules) {
  return message.attempts >= rules.max_attempts;
}

Verdict JudgeSpent(const queue::Message& message) {
  if (message.interrupted) {
    return GiveUp(DeadLetterKind::kCrash,
                  absl::StrCat("attempt ", message.attempts, " of ", message.attempts,
                               " was interrupted: its handler's process died or lost its lease"));
  }
  return GiveUp(DeadLetterKind::kAttempts,
                absl::StrCat("all ", message.attempts, " attempts were used up before"));
}

Verdict JudgePostponed(bool begun, const VerdictRules& rules) {
  return GiveBack(rules.maximum_retry_delay, begun, false, &ListenerCounters::messages_deferred);
}

absl::Status CheckOutputs(const std::vector<queue::NewMessage>& outputs,
                          const VerdictRules& rules) {
  if (outputs.empty()) return absl::OkStatus();
  if (!rules.has_output_queue) {
    return absl::InvalidArgumentError("the listener has no output queue");
  }
  for (const queue::NewMessage& output : outputs) {
    MUSTER_RETURN_IF_ERROR(queue::ValidateNewMessage(output));
  }
  return absl::OkStatus();
}

}  // namespace muster::listener
