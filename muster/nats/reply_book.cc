#include "muster/nats/reply_book.h"

#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace muster::nats {

ReplyBook::Call::Call(ReplyBook* book) : book_(book) {
  base::MutexLock lock(&book_->mu_);
  id_ = ++book_->last_call_;
  book_->calls_.emplace(id_, this);
}

ReplyBook::Call::~Call() {
  base::MutexLock lock(&book_->mu_);
  book_->calls_.erase(id_);
}

std::string ReplyBook::Call::ReplySubject(size_t place) const {
  return absl::StrCat(book_->prefix_, ".", id_, ".", place);
}

std::optional<std::pair<size_t, Incoming>> ReplyBook::Call::Await(absl::Duration deadline) {
  base::MutexLock lock(&book_->mu_);
  while (replies_.empty()) {
    const bool late = book_->clock_->WaitUntil(&arrival_, &book_->mu_, deadline);
    if (late && replies_.empty()) return std::nullopt;
  }
  std::pair<size_t, Incoming> reply = std::move(replies_.front());
  replies_.pop_front();
  return reply;
}

void ReplyBook::Deliver(Incoming reply) {
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
