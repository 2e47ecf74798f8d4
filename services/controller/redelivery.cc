// SPDX-License-Identifier: Apache-2.0
#include "services/controller/redelivery.h"

#include <algorithm>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "muster/base/log.h"
#include "muster/queue/limits.h"

namespace muster::controller {
namespace {

// Between two log lines about results that this controller cannot read.
constexpr absl::Duration kTellPause = absl::Minutes(1);

// Between two moves of a waiting result to the tail of its queue, and the most in one put: their
// bodies are large at worst.
constexpr absl::Duration kTailPause = absl::Seconds(10);
constexpr size_t kTailPage = 32;

}  // namespace

bool Redelivery::GoesToTheTail(uint64_t batch, const queue::Message& message) {
  if (!away_->IsUnknownToAll(batch)) return false;
  const absl::Duration now = clock_->Monotonic();
  if (now >= sets_tail_) {
    const absl::StatusOr<queue::QueueExtent> extent = queues_->Extent(partition_);
    if (!extent.ok()) return false;
    tail_ = extent->next;
    sets_tail_ = now + kTailPause;
  }
  return message.position < tail_;
}

void Redelivery::ComeLater(uint64_t batch, queue::Message message) {
  if (GoesToTheTail(batch, message)) {
    queue::NewMessage& copy = copies_.emplace_back();
    copy.body = std::move(message.body);
    copy.ttl = message.expiration_time - clock_->Now();  // infinite: it never expires
    // Elsewhere the copy comes at once, and is given back.
    if (queues_->traits().delayed_put) {
      copy.delay = std::min(away_->PauseOf(batch), copy.ttl / 2);
    }
    copied_.push_back(std::move(message.receipt));
    return;
  }
  ComeAtOnce(std::move(message.receipt));
  put_back_.back().visibility = away_->PauseOf(batch);
}

void Redelivery::ComeAtOnce(queue::Receipt receipt) {
  queue::UpdateRequest& request = put_back_.emplace_back();
  request.receipt = std::move(receipt);
  request.attempt_ended = true;
}

void Redelivery::Send() {
  const absl::Span<const queue::UpdateRequest> all = put_back_;
  for (size_t first = 0; first < all.size(); first += queue::kMaxSettle) {
    const auto updated = queues_->Update(partition_, all.subspan(first, queue::kMaxSettle));
    if (updated.ok()) continue;
    base::Log(base::kWarning, "results come again only when their leases have lapsed",
              {{"queue", partition_.ToString()}, {"why", updated.status().ToString()}});
    break;
  }
  put_back_.clear();
  PutAtTheTail();
}

// The copies are durable before the originals go; after a crash in between, both are there, of
// which one counts.
void Redelivery::PutAtTheTail() {
  const absl::Span<const queue::NewMessage> copies = copies_;
  const absl::Span<const queue::Receipt> originals = copied_;
  for (size_t first = 0; first < copies.size(); first += kTailPage) {
    const auto put = queues_->Put(partition_, copies.subspan(first, kTailPage));
    absl::Status moved = put.status();
    if (moved.ok()) {
      moved = queues_->Delete(partition_, originals.subspan(first, kTailPage)).status();
    }
    base::LogUnlessOk(base::kWarning, "results that wait stay at the head of their queue", moved,
                      {{"queue", partition_.ToString()}});
    if (!moved.ok()) break;
  }
  copies_.clear();
  copied_.clear();
}

void Redelivery::LeaveUntilLapse(absl::string_view what, const absl::Status& why) {
  const absl::Duration now = clock_->Monotonic();
  left_until_ = now + 2 * lease_;
  if (now >= tells_again_) {
    tells_again_ = now + kTellPause;
    base::Log(base::kError, what, {{"queue", partition_.ToString()}, {"why", why.message()}});
  }
}

absl::Duration Redelivery::ComesAgainIn() {
  const absl::Duration pause = away_->ShortestPause(lease_);
  return clock_->Monotonic() < left_until_ ? std::min(pause, lease_) : pause;
}

}  // namespace muster::controller
