// SPDX-License-Identifier: Apache-2.0
#include "services/queue-gateway/operations/long_polls.h"

#include <algorithm>

#include "muster/base/check.h"
#include "muster/base/log.h"

namespace muster::queue_gateway::operations {
namespace {

// The store may say that a message is ready which another call holds at this moment. What that call
// does wakes the queue; this only keeps a round from spinning until then.
constexpr absl::Duration kLeastPause = absl::Milliseconds(10);

std::vector<queue::Message> Nothing() { return {}; }

}  // namespace

absl::Duration LookInterval(size_t queues) {
  return std::max(kLookInterval, absl::Seconds(static_cast<int64_t>(queues)) / kLooksPerSecond);
}

LongPolls::LongPolls(queue::QueueStore* queues, base::Clock* clock, int max_waiters)
    : queues_(queues),
      clock_(clock),
      max_waiters_(max_waiters),
      rounds_(std::make_unique<base::WorkerPool>(kRoundThreads)),
      watch_([this] { WatchTime(); }) {}

LongPolls::~LongPolls() {
  Drain();
  {
    base::MutexLock lock(&mu_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  watch_.join();
  rounds_.reset();
}

LongPolls::Ticket LongPolls::Wait(const queue::QueueId& queue, absl::Duration patience, Take take,
                                  Done done) {
  {
    base::MutexLock lock(&mu_);
    if (!draining_ && static_cast<int>(waiters_.size()) < max_waiters_) {
      const Ticket ticket = next_ticket_++;
      const absl::Duration deadline = clock_->Monotonic() + patience;
      waiters_[ticket] = {queue, deadline, std::move(take), std::move(done)};
      deadlines_.insert({deadline, ticket});
      Line& line = lines_[queue];
      line.waiting.insert(ticket);
      // What became ready since the caller looked is found by this round.
      StartRoundLocked(queue, &line);
      if (deadlines_.begin()->second == ticket) changed_.NotifyAll();
      return ticket;
    }
  }
  done(Nothing());
  return 0;
}

LongPolls::Done LongPolls::RemoveLocked(Ticket ticket) {
  const auto found = waiters_.find(ticket);
  MUSTER_CHECK(found != waiters_.end(), "ticket ", ticket);
  const queue::QueueId queue = found->second.queue;
  Done done = std::move(found->second.done);
  abandoned_ -= found->second.is_abandoned ? 1 : 0;
  deadlines_.erase({found->second.deadline, ticket});
  lines_[queue].waiting.erase(ticket);
  waiters_.erase(found);
  ForgetIfIdleLocked(queue);
  changed_.NotifyAll();
  return done;
}

void LongPolls::ForgetIfIdleLocked(const queue::QueueId& queue) {
  const auto found = lines_.find(queue);
  if (found == lines_.end()) return;
  if (!found->second.waiting.empty() || found->second.has_round) return;
  LookAtLocked(queue, &found->second, absl::InfiniteDuration());
  lines_.erase(found);
}

void LongPolls::LookAtLocked(const queue::QueueId& queue, Line* line, absl::Duration at) {
  looks_.erase({line->look_at, queue});
  line->look_at = at;
  if (at != absl::InfiniteDuration()) looks_.insert({at, queue});
}

void LongPolls::Abandon(Ticket ticket) {
  Done forgotten;  // destroyed without the lock: it may hold the last handle of a connection
  base::MutexLock lock(&mu_);
  const auto found = waiters_.find(ticket);
  if (found == waiters_.end()) return;
  if (found->second.is_served) {
    abandoned_ += found->second.is_abandoned ? 0 : 1;
    found->second.is_abandoned = true;
    return;
  }
  forgotten = RemoveLocked(ticket);
}

bool LongPolls::HasWaiters(const queue::QueueId& queue) {
  base::MutexLock lock(&mu_);
  return lines_.contains(queue);
}

int LongPolls::waiters() {
  base::MutexLock lock(&mu_);
  return static_cast<int>(waiters_.size()) - abandoned_;
}

void LongPolls::Wake(const queue::QueueId& queue) {
  base::MutexLock lock(&mu_);
  const auto found = lines_.find(queue);
  if (found != lines_.end()) StartRoundLocked(queue, &found->second);
}

void LongPolls::WakeAll() {
  base::MutexLock lock(&mu_);
  for (auto& [queue, line] : lines_) StartRoundLocked(queue, &line);
}

void LongPolls::StartRoundLocked(const queue::QueueId& queue, Line* line) {
  LookAtLocked(queue, line, absl::InfiniteDuration());
  if (line->has_round) {
    line->look_again = true;
    return;
  }
  line->has_round = true;
  rounds_->Add([this, queue] { Round(queue); });
}

void LongPolls::Round(const queue::QueueId& queue) {
  while (true) {
    Take take;
    const Ticket ticket = Next(queue, &take);
    if (ticket == 0) return;
    auto found = take();
    if (!found.ok() || !found->empty()) {
      Serve(ticket, std::move(found));
      continue;
    }
    const absl::Duration until_visible =
        queues_->TimeToVisible(queue).value_or(LookInterval(CountLines()));
    if (!PutBack(ticket, std::max(until_visible, kLeastPause))) return;
  }
}

size_t LongPolls::CountLines() {
  base::MutexLock lock(&mu_);
  return lines_.size();
}

LongPolls::Ticket LongPolls::Next(const queue::QueueId& queue, Take* take) {
  base::MutexLock lock(&mu_);
  Line& line = lines_[queue];
  line.look_again = false;
  if (line.waiting.empty()) {
    line.has_round = false;
    ForgetIfIdleLocked(queue);
    changed_.NotifyAll();
    return 0;
  }
  const Ticket ticket = *line.waiting.begin();
  line.waiting.erase(line.waiting.begin());
  Waiter& waiter = waiters_[ticket];
  waiter.is_served = true;
  *take = waiter.take;
  return ticket;
}

bool LongPolls::PutBack(Ticket ticket, absl::Duration until_visible) {
  Done late;
  bool goes_on = false;
  bool is_abandoned = false;
  {
    base::MutexLock lock(&mu_);
    Waiter& waiter = waiters_[ticket];
    const queue::QueueId queue = waiter.queue;
    Line& line = lines_[queue];
    waiter.is_served = false;
    is_abandoned = waiter.is_abandoned;
    // Its ticket is the lowest: it is the first again.
    line.waiting.insert(ticket);
    const bool is_late = waiter.deadline <= clock_->Monotonic();
    goes_on = line.look_again || is_late || is_abandoned || draining_;
    if (!goes_on) {
      line.has_round = false;
      LookAtLocked(queue, &line, clock_->Monotonic() + until_visible);
      changed_.NotifyAll();
    }
    if (is_late || is_abandoned || draining_) {
      late = RemoveLocked(ticket);
      if (!is_abandoned) ++calling_;
    }
  }
  if (late != nullptr && !is_abandoned) Call(late, Nothing());
  return goes_on;
}

void LongPolls::Serve(Ticket ticket, absl::StatusOr<std::vector<queue::Message>> found) {
  Done done;
  queue::QueueId queue;
  bool is_abandoned = false;
  {
    base::MutexLock lock(&mu_);
    const Waiter& waiter = waiters_[ticket];
    queue = waiter.queue;
    is_abandoned = waiter.is_abandoned;
    done = RemoveLocked(ticket);
    if (!is_abandoned) ++calling_;
  }
  if (!is_abandoned) return Call(done, std::move(found));
  if (found.ok()) GiveBack(queue, *found);
}

void LongPolls::Call(const Done& done, absl::StatusOr<std::vector<queue::Message>> found) {
  done(std::move(found));
  base::MutexLock lock(&mu_);
  if (--calling_ == 0) changed_.NotifyAll();
}

void LongPolls::GiveBack(const queue::QueueId& queue, const std::vector<queue::Message>& messages) {
  std::vector<queue::UpdateRequest> requests(messages.size());
  for (size_t i = 0; i < messages.size(); ++i) requests[i].receipt = messages[i].receipt;
  base::LogUnlessOk(base::kWarning, "messages of a client that hung up stay leased",
                    queues_->Update(queue, requests).status(), {{"queue", queue.ToString()}});
}

absl::Duration LongPolls::NextTimeLocked() const {
  absl::Duration next = absl::InfiniteDuration();
  for (const auto& [deadline, ticket] : deadlines_) {
    if (waiters_.at(ticket).is_served) continue;
    next = deadline;
    break;
  }
  return looks_.empty() ? next : std::min(next, looks_.begin()->at);
}

std::vector<LongPolls::Done> LongPolls::TakeLateLocked(absl::Duration now) {
  std::vector<Ticket> late;
  for (const auto& [deadline, ticket] : deadlines_) {
    if (deadline > now && !draining_) break;
    // A round that serves it ends it itself.
    if (!waiters_[ticket].is_served) late.push_back(ticket);
  }
  std::vector<Done> done;
  for (const Ticket ticket : late) done.push_back(RemoveLocked(ticket));
  calling_ += static_cast<int>(done.size());
  return done;
}

void LongPolls::WatchTime() {
  base::MutexLock lock(&mu_);
  while (!stopping_) {
    const absl::Duration now = clock_->Monotonic();
    std::vector<Done> late = TakeLateLocked(now);
    while (!looks_.empty() && looks_.begin()->at <= now) {
      const queue::QueueId queue = looks_.begin()->queue;
      StartRoundLocked(queue, &lines_[queue]);
    }
    if (!late.empty()) {
      mu_.Unlock();
      for (const Done& done : late) Call(done, Nothing());
      late.clear();
      mu_.Lock();
      continue;
    }
    clock_->WaitUntil(&changed_, &mu_, NextTimeLocked());
  }
}

void LongPolls::Drain() {
  base::MutexLock lock(&mu_);
  draining_ = true;
  changed_.NotifyAll();
  while (!lines_.empty() || calling_ > 0) changed_.Wait(&mu_);
}

}  // namespace muster::queue_gateway::operations
