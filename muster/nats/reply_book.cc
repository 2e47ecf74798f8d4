#include "muster/nats/reply_book.h"

#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace muster::nats {

PendingReplies::Call::Call(PendingReplies* pending) : pending_(pending) {
  base::MutexLock lock(&pending_->mu_);
  id_ = ++pending_->last_call_;
  pending_->calls_.emplace(id_, this);
}

PendingReplies::Call::~Call() {
  base::MutexLock lock(&pending_->mu_);
  pending_->calls_.erase(id_);
}

std::string PendingReplies::Call::ReplySubject(size_t place) const {
  return absl::StrCat(pending_->prefix_, ".", id_, ".", place);
}

std::optional<std::pair<size_t, Incoming>> PendingReplies::Call::Await(absl::Duration deadline) {
  base::MutexLock lock(&pending_->mu_);
  while (replies_.empty()) {
    const bool late = pending_->clock_->WaitUntil(&arrival_, &pending_->mu_, deadline);
    if (late && replies_.empty()) return std::nullopt;
  }
  std::pair<size_t, Incoming> reply = std::move(replies_.front());
  replies_.pop_front();
  return reply;
}

void PendingReplies::Deliver(Incoming reply) {
  absl::string_view rest = reply.subject;
  if (!absl::ConsumePrefix(&rest, prefix_) || !absl::ConsumePrefix(&rest, ".")) return;
  const std::pair<absl::string_view, absl::string_view> address =
      absl::StrSplit(rest, absl::MaxSplits('.', 1));
  uint64_t call = 0, place = 0;
  if (!absl::SimpleAtoi(address.first, &call) || !absl::SimpleAtoi(address.second, &place)) return;
  base::MutexLock lock(&mu_);
  const auto found = calls_.find(call);
  if (found == calls_.end()) return;
  found->second->replies_.emplace_back(place, std::move(reply));
  found->second->arrival_.NotifyOne();
}

}  // namespace muster::nats
