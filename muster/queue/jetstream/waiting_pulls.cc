// SPDX-License-Identifier: Apache-2.0
#include "muster/queue/jetstream/waiting_pulls.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "muster/base/log.h"
#include "muster/base/names.h"
#include "muster/base/status.h"
#include "muster/queue/jetstream/stream_layout.h"
#include "nlohmann/json.hpp"

namespace muster::queue::jetstream {
namespace {

// What the server has sent before it hears that the subscription ends is here within a round trip.
constexpr absl::Duration kDrainTimeout = absl::Seconds(1);

// A pull of Ask waits for so long at the server. It is taken over until the second half of this, so
// that the next one waits beside it when it expires.
constexpr absl::Duration kAskedPull = absl::Seconds(4);

// Followed by the stream and the consumer.
constexpr char kLeaderElected[] = "$JS.EVENT.ADVISORY.CONSUMER.LEADER_ELECTED.";

absl::Status EndOf(const nats::Incoming& status) {
  switch (status.status) {
    case nats::kNoMessages:
    case nats::kRequestTimeout:
      return absl::NotFoundError("no message came");
    default:
      return absl::UnavailableError(absl::StrCat("the server ended a waiting pull: ", status.status,
                                                 " ", status.description));
  }
}

}  // namespace

class WaitingPulls::Handle final : public queue::QueueStore::Wait {
 public:
  Handle(WaitingPulls* pulls, uint64_t id) : pulls_(pulls), id_(id) {}
  ~Handle() override { pulls_->End(id_); }

 private:
  WaitingPulls* const pulls_;  // not owned
  const uint64_t id_;
};

WaitingPulls::WaitingPulls(nats::Connection* connection, base::Clock* clock)
    : connection_(connection),
      clock_(clock),
      inbox_(absl::StrCat("_INBOX.", base::MakeInstanceId("waits"))) {}

WaitingPulls::~WaitingPulls() {
  base::MutexLock lock(&subscribe_mu_);
  following_.reset();
  leaders_.reset();
  if (subscription_ != nullptr && connection_->connected()) subscription_->Drain(kDrainTimeout);
  subscription_.reset();
}

absl::StatusOr<std::unique_ptr<queue::QueueStore::Wait>> WaitingPulls::Begin(
    const queue::QueueId& queue, absl::Duration patience, Take take) {
  const absl::Duration now = clock_->Monotonic();
  return Enter({queue, now, now + patience, std::move(take), /*leaves_pull=*/false});
}

absl::StatusOr<std::optional<nats::Incoming>> WaitingPulls::Ask(const queue::QueueId& queue,
                                                                absl::Duration patience) {
  base::Mutex mu;
  base::CondVar came;
  std::optional<absl::StatusOr<nats::Incoming>> answer;
  const absl::Duration now = clock_->Monotonic();
  const auto take = [&](absl::StatusOr<Arrival> arrival) {
    base::MutexLock lock(&mu);
    if (arrival.ok()) {
      answer.emplace(std::move(arrival->message));
    } else {
      answer.emplace(arrival.status());
    }
    came.NotifyAll();
    return true;
  };
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<queue::QueueStore::Wait> wait,
                          Enter({queue, now, now + kAskedPull, take, /*leaves_pull=*/true}));
  {
    base::MutexLock lock(&mu);
    const auto until = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(patience);
    while (!answer.has_value() && came.WaitUntil(&mu, until)) continue;
  }
  wait.reset();
  if (!answer.has_value() || absl::IsNotFound(answer->status())) return std::nullopt;
  return *std::move(answer);
}

absl::StatusOr<std::unique_ptr<queue::QueueStore::Wait>> WaitingPulls::Enter(Entry entry) {
  MUSTER_RETURN_IF_ERROR(Subscribe());
  const queue::QueueId queue = entry.queue;
  const absl::Duration patience = entry.until - entry.asked;
  bool pulls = true;
  uint64_t id = 0;
  {
    base::MutexLock lock(&mu_);
    if (entries_.size() >= kMaxWaits) {
      return absl::ResourceExhaustedError(
          absl::StrCat("this process waits for messages ", kMaxWaits, " times already"));
    }
    if (entry.leaves_pull) id = TakeOver(queue, entry.asked);
    pulls = id == 0;
    if (pulls) id = ++last_id_;
    entries_[id] = std::move(entry);
  }
  // Before the pull: its message may come at once.
  auto handle = std::make_unique<Handle>(this, id);
  if (!pulls || !connection_->connected()) return handle;
  const absl::Status pulled = Pull(id, queue, patience);
  if (pulled.ok()) return handle;
  base::MutexLock lock(&mu_);
  entries_.erase(id);  // and so leaves no pull, for there is none
  return pulled;
}

absl::Status WaitingPulls::Subscribe() {
  base::MutexLock lock(&subscribe_mu_);
  if (subscription_ != nullptr) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(following_, connection_->FollowChanges([this](bool connected) {
    if (connected) PullAgain(nullptr);
  }));
  MUSTER_ASSIGN_OR_RETURN(
      leaders_,
      connection_->Subscribe(absl::StrCat(kLeaderElected, "*.", kConsumer),
                             [this](const nats::Incoming& advisory) { OnNewLeader(advisory); }));
  MUSTER_ASSIGN_OR_RETURN(
      subscription_,
      connection_->Subscribe(absl::StrCat(inbox_, ".*"),
                             [this](const nats::Incoming& message) { OnMessage(message); }));
  return absl::OkStatus();
}

absl::Status WaitingPulls::Pull(uint64_t id, const queue::QueueId& queue, absl::Duration patience) {
  const nlohmann::json wish = {{"batch", 1}, {"expires", absl::ToInt64Nanoseconds(patience)}};
  const std::string text = wish.dump();
  return connection_->Publish(
      {.subject = absl::StrCat("$JS.API.CONSUMER.MSG.NEXT.", StreamOf(queue), ".", kConsumer),
       .data = text,
       .reply = absl::StrCat(inbox_, ".", id)});
}

void WaitingPulls::OnNewLeader(const nats::Incoming& advisory) {
  absl::string_view consumer = advisory.subject;
  if (!absl::ConsumePrefix(&consumer, kLeaderElected)) return;
  const std::vector<absl::string_view> tokens = absl::StrSplit(consumer, '.');
  if (const auto queue = QueueOfStream(tokens.front()); queue.has_value()) PullAgain(&*queue);
}

void WaitingPulls::PullAgain(const queue::QueueId* queue) {
  struct Again {
    uint64_t id;
    queue::QueueId queue;
    absl::Duration patience;
  };
  std::vector<Again> again;
  {
    const absl::Duration now = clock_->Monotonic();
    base::MutexLock lock(&mu_);
    const auto is_concerned = [queue](const queue::QueueId& of) {
      return queue == nullptr || of == *queue;
    };
    std::erase_if(left_, [&](const auto& left) { return is_concerned(left.second.queue); });
    for (const auto& [id, entry] : entries_) {
      if (entry.until > now && is_concerned(entry.queue))
        again.push_back({id, entry.queue, entry.until - now});
    }
  }
  for (const Again& pull : again) {
    base::LogUnlessOk(base::kWarning, "a pull does not wait any more",
                      Pull(pull.id, pull.queue, pull.patience), {{"queue", pull.queue.ToString()}});
  }
}

std::optional<WaitingPulls::Entry> WaitingPulls::Match(const nats::Incoming& message) {
  base::MutexLock lock(&mu_);
  auto found = entries_.end();
  if (message.status != 0) {
    absl::string_view token = message.subject;
    uint64_t id = 0;
    if (absl::ConsumePrefix(&token, absl::StrCat(inbox_, ".")) && absl::SimpleAtoi(token, &id)) {
      found = entries_.find(id);
      left_.erase(id);
    }
  } else if (const auto queue = QueueOfStream(StreamOfAck(message.reply)); queue.has_value()) {
    const auto is_of_it = [&](const auto& entry) { return entry.second.queue == *queue; };
    found = std::find_if(entries_.begin(), entries_.end(), is_of_it);
    // The server uses up the oldest pull. If nobody waits for that, the entry leaves its own.
    const auto left = std::find_if(left_.begin(), left_.end(), is_of_it);
    const bool is_left =
        left != left_.end() && (found == entries_.end() || left->first < found->first);
    if (is_left) left_.erase(left);
    if (is_left && found != entries_.end() && found->second.leaves_pull) {
      left_[found->first] = {found->second.queue, found->second.until};
    }
  }
  if (found == entries_.end()) return std::nullopt;
  running_ = found->first;
  Entry entry = std::move(found->second);
  entries_.erase(found);
  return entry;
}

void WaitingPulls::OnMessage(const nats::Incoming& message) {
  const std::optional<Entry> entry = Match(message);
  bool taken = false;
  if (entry.has_value()) {
    taken = message.status == 0 ? entry->take(Arrival{message, entry->asked})
                                : entry->take(EndOf(message));
    base::MutexLock lock(&mu_);
    running_ = 0;
    changed_.NotifyAll();
  }
  if (taken || message.status != 0 || message.reply.empty()) return;
  base::LogUnlessOk(base::kWarning,
                    "a message that no receive waits for comes again when its lease lapses",
                    connection_->Publish({.subject = message.reply, .data = kAtOnceAgain}));
}

void WaitingPulls::End(uint64_t id) {
  base::MutexLock lock(&mu_);
  if (const auto ended = entries_.find(id); ended != entries_.end()) {
    const Entry& entry = ended->second;
    if (entry.leaves_pull) left_[id] = {entry.queue, entry.until};
    entries_.erase(ended);
  }
  while (running_ == id) changed_.Wait(&mu_);
}

uint64_t WaitingPulls::TakeOver(const queue::QueueId& queue, absl::Duration now) {
  std::erase_if(left_, [now](const auto& left) { return left.second.until <= now; });
  const auto found = std::find_if(left_.begin(), left_.end(), [&](const auto& left) {
    return left.second.queue == queue && left.second.until - now >= kAskedPull / 2;
  });
  if (found == left_.end()) return 0;
  const uint64_t id = found->first;
  left_.erase(found);
  return id;
}

}  // namespace muster::queue::jetstream
