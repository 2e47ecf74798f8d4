// SPDX-License-Identifier: Apache-2.0

// Verdict: the one place that decides what becomes of a message: deleted, given back or given up.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/listener/metrics.h"
#include "muster/listener/subscriber.h"
#include "muster/queue/queue_store.h"

namespace muster::listener {

struct ListenerOptions;

struct Verdict {
  enum class Action {
    kDelete,      // put `outputs`, then delete
    kDeadLetter,  // put `outputs` (of Subscriber::OnGivenUp), then set aside with `why`
    kGiveBack,    // visible again after `delay`
  };
  Action action = Action::kGiveBack;
  absl::Duration delay = absl::ZeroDuration();
  // kGiveBack: the lease ends with it; the attempt that began, if any, did not end in a death.
  bool attempt_ended = false;
  bool refund_attempt = false;  // kGiveBack: … and is not charged
  std::string wanted;           // kGiveBack: not empty: for listeners that have this
  std::string why;
  queue::DeadLetterKind kind = queue::DeadLetterKind::kAttempts;  // kDeadLetter: of `why`
  std::vector<queue::NewMessage> outputs;
  std::function<void(const absl::Status&)> on_settled;  // as of Settlement
  // The counter to increase once it is done.
  int64_t ListenerCounters::*counter = &ListenerCounters::messages_done;
};

struct VerdictRules {
  int max_attempts = 5;
  absl::Duration minimum_retry_delay = absl::Milliseconds(100);
  absl::Duration maximum_retry_delay = absl::Minutes(1);
  bool has_output_queue = false;
};

VerdictRules RulesOf(const ListenerOptions& options);

// minimum × 2^(attempts − 1), × [0.8, 1.2) by `uniform` in [0, 1), at most the maximum.
absl::Duration RetryDelay(const VerdictRules& rules, int attempts, double uniform);

// How long a message for other listeners stays invisible after `dequeue_count` receives, the last
// of them in vain: 250 ms × 2^(dequeue_count − 1), at most 25 s, × [0.8, 1.2) by `uniform`.
absl::Duration DelayForOthers(int dequeue_count, double uniform);

// Decides what `settlement` means for a message with `attempts` charged. `begun`: the settling
// holder began one of them.
Verdict Judge(Settlement settlement, int attempts, bool begun, const VerdictRules& rules,
              double uniform);

// Returns `verdict` for a message that was charged together with others and did not begin: giving
// it back refunds the attempt.
Verdict Refunded(Verdict verdict);

// Whether the message had used up its attempts before this holder began: its earlier holders died,
// or could not report an outcome. Such a message is given up without another run.
bool IsSpent(const queue::Message& message, const VerdictRules& rules);
Verdict JudgeSpent(const queue::Message& message);

// The verdict for a message that should be given up but cannot be yet: give it back, with the
// longest delay.
Verdict JudgePostponed(bool begun, const VerdictRules& rules);

// InvalidArgument when the output queue could never take `outputs`.
absl::Status CheckOutputs(const std::vector<queue::NewMessage>& outputs, const VerdictRules& rules);

}  // namespace muster::listener
