// SPDX-License-Identifier: Apache-2.0

// How a StreamQueue asks its server for messages, past what servers leave unanswered.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/clock.h"
#include "muster/nats/status.h"
#include "muster/queue/jetstream/stream_layout.h"
#include "muster/queue/jetstream/stream_queue.h"
#include "nlohmann/json.hpp"

namespace muster::queue::jetstream {
namespace {

// A stream acknowledges a message before its consumer has seen it (seen with 2.15): a receive right
// after a put may find nothing. So an empty receive looks a second time, this much later. The
// second pull does not wait at the server instead: when 2.9 takes up a message that was given back,
// and finds that the only pull that waits has just expired, it forgets to deliver that message
// until its lease ends, and delivers the last message of the stream twice (consumer.go: "sseq--").
constexpr absl::Duration kSecondLook = absl::Milliseconds(2);

// Of several pulls at a time, the server sometimes leaves one unanswered (seen with 2.9 and 2.15):
// another has taken the message that it counted on. This is how long a pull that does not wait is
// waited for before the server is asked whether it is there.
constexpr absl::Duration kAnswered = absl::Seconds(1);

// While a consumer has its max_ack_pending of deliveries, and further messages wait, the server
// answers no pull that is not to wait (seen with 2.9 and 2.15,
// findings/nats_no_wait_unanswered_at_max_ack_pending.sh). One that waits gets what was given back
// and is due. A receive waits for it for so long, also where nothing is there: only such a consumer
// is asked like that.
constexpr absl::Duration kStalledPatience = absl::Milliseconds(20);

// A server shows the consumer that another process has just made before it listens for its pulls
// (seen with 2.15). So a receive repeats a pull that nobody hears while the consumer is there:
// after kFirstUnheard, and each time after twice as long, up to kLastUnheard.
constexpr absl::Duration kFirstUnheard = absl::Milliseconds(10);
constexpr absl::Duration kLastUnheard = absl::Milliseconds(160);

}  // namespace

absl::StatusOr<std::vector<nats::Incoming>> StreamQueue::Pull(int max_messages) {
  MUSTER_CHECK(max_messages > 0, "max_messages ", max_messages);
  nlohmann::json wish = {{"batch", max_messages}, {"no_wait", true}};
  if (stalled_) wish["expires"] = absl::ToInt64Nanoseconds(kStalledPatience);
  const std::string text = wish.dump();
  const nats::Outgoing request{
      .subject = absl::StrCat("$JS.API.CONSUMER.MSG.NEXT.", StreamOf(id_), ".", kConsumer),
      .data = text};
  std::vector<nats::Incoming> deliveries;
  const auto take = [&](nats::Incoming reply) {
    // Every status ends the pull: no delivery follows it.
    if (reply.status != 0) return false;
    deliveries.push_back(std::move(reply));
    return deliveries.size() < static_cast<size_t>(max_messages);
  };
  const absl::Duration timeout = std::min(kAnswered, options_->timeout);
  const absl::Status pulled = prompt_->connection()->RequestMany(request, timeout, take);
  // The deliveries that came are leased, even if the pull failed later.
  if (!pulled.ok() && deliveries.empty()) return pulled;
  return deliveries;
}

bool StreamQueue::MayForget() {
  const int64_t connection = prompt_->connection()->reconnects();
  if (level_asked_over_ != connection) {
    const absl::StatusOr<int> level = prompt_->ApiLevel();
    if (!level.ok()) return true;
    may_forget_ = *level == 0;
    level_asked_over_ = connection;
  }
  return may_forget_;
}

absl::StatusOr<std::vector<nats::Incoming>> StreamQueue::AskForDue(int max_messages) {
  std::vector<nats::Incoming> deliveries;
  absl::Status asked;
  while (deliveries.size() < static_cast<size_t>(max_messages)) {
    auto message = waits_->Ask(id_, deliveries.empty() ? kStalledPatience : kSecondLook);
    asked = message.status();
    if (!message.ok() || !message->has_value()) break;
    deliveries.push_back(**std::move(message));
  }
  const absl::Status consumer = RefreshConsumer().status();
  if (!deliveries.empty()) return deliveries;
  // Without the consumer, 2.9 answers no pull either: the caller finds out why it is not there.
  if (!consumer.ok()) return absl::UnavailableError(consumer.message());
  if (absl::IsResourceExhausted(asked)) return asked;
  return deliveries;
}

absl::StatusOr<std::vector<nats::Incoming>> StreamQueue::PullWhatIsThere(int max_messages) {
  if (stalled_ && MayForget()) return AskForDue(max_messages);
  absl::StatusOr<std::vector<nats::Incoming>> first = Pull(max_messages);
  for (absl::Duration wait = kFirstUnheard;
       nats::IsNobodyListens(first.status()) && wait <= kLastUnheard && RefreshConsumer().ok();
       wait *= 2) {
    base::SleepUnlessStopped(base::RealClock(), wait, {});
    first = Pull(max_messages);
  }
  const bool is_unanswered =
      absl::IsUnavailable(first.status()) && !nats::IsNobodyListens(first.status());
  if (is_unanswered && prompt_->connection()->connected()) {
    // The inbox of the pull is gone, so the server gives it no message any more. At once where it
    // may forget one over that, so that another pull stands behind it.
    if (MayForget()) return AskForDue(max_messages);
    if (RefreshConsumer().ok()) first.emplace();
  } else if (stalled_ && first.ok() && first->empty()) {
    // The pull has waited. Ignore an error here, and below: the server has just answered.
    RefreshConsumer().IgnoreError();
    return first;
  }
  if (!first.ok() || !first->empty()) return first;
  base::SleepUnlessStopped(base::RealClock(), kSecondLook, {});
  absl::StatusOr<std::vector<nats::Incoming>> second = Pull(max_messages);
  return second.ok() ? std::move(second) : std::move(first);
}

}  // namespace muster::queue::jetstream
