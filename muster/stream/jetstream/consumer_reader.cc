// SPDX-License-Identifier: Apache-2.0
#include "muster/stream/jetstream/consumer_reader.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/base/status.h"
#include "muster/nats/connection.h"
#include "muster/stream/event_codec.h"
#include "muster/stream/jetstream/stream_layout.h"
#include "nlohmann/json.hpp"

namespace muster::stream::jetstream {
namespace {

using nlohmann::json;

constexpr int kHeartbeatStatus = 100;
// Consumers that a call of Next makes before it gives up: each of them was of no use.
constexpr int kMaxResumes = 4;

int64_t BytesOf(const Event& event) {
  return static_cast<int64_t>(event.body.size() + event.key.size());
}

// A 409 also ends a pull whose next event would be too large for the rest of its bytes.
bool EndsPullOnly(const nats::Incoming& status) {
  return status.status == nats::kNoMessages || status.status == nats::kRequestTimeout ||
         (status.status == nats::kConflict &&
          (absl::StrContains(status.description, "MaxBytes") ||
           absl::StrContains(status.description, "Batch Completed")));
}

}  // namespace

ConsumerReader::ConsumerReader(nats::JetStream* jetstream, ConsumerInbox* inbox, base::Clock* clock,
                               absl::Duration pull_expires, ServerPartition partition,
                               int64_t offset)
    : jetstream_(jetstream),
      inbox_(inbox),
      clock_(clock),
      pull_expires_(pull_expires),
      heartbeat_(pull_expires / 3),
      silence_(pull_expires * 5 / 6),
      partition_(std::move(partition)),
      place_(offset),
      expected_(offset),
      pull_ended_(clock->Monotonic()),
      heard_(clock->Monotonic()) {}

ConsumerReader::~ConsumerReader() { LeaveConsumer(); }

void ConsumerReader::Cancel() {
  base::MutexLock lock(&mu_);
  cancelled_ = true;
  changed_.NotifyAll();
}

absl::StatusOr<std::vector<Event>> ConsumerReader::Next(int max_events, absl::Duration wait) {
  MUSTER_RETURN_IF_ERROR(ValidateRead(max_events));
  const absl::Duration now = clock_->Monotonic();
  const absl::Duration patience = now + jetstream_->timeout();
  for (int resumes = 0;;) {
    switch (Await(now + wait, patience)) {
      case Step::kTake:
        return TakeBuffered(max_events);
      case Step::kEnd:
        return std::vector<Event>();
      case Step::kPull:
        MUSTER_RETURN_IF_ERROR(Pull());
        break;
      case Step::kResume:
        if (++resumes > kMaxResumes) {
          return absl::UnavailableError(
              absl::StrCat(partition_.name, ": the server does not deliver its events"));
        }
        MUSTER_RETURN_IF_ERROR(Resume());
        break;
    }
  }
}

ConsumerReader::Step ConsumerReader::Await(absl::Duration deadline, absl::Duration patience) {
  base::MutexLock lock(&mu_);
  for (;;) {
    if (cancelled_) return Step::kEnd;
    if (!buffer_.empty()) return Step::kTake;
    if (broken_) return Step::kResume;
    if (pulled_ == 0) return Step::kPull;
    const bool are_there = expected_ < known_next_;
    const absl::Duration until = are_there ? std::max(deadline, patience) : deadline;
    const absl::Duration now = clock_->Monotonic();
    if (now >= heard_ + silence_ || (are_there && now >= until)) {
      broken_ = true;
      continue;
    }
    if (now >= until) return Step::kEnd;
    clock_->WaitUntil(&changed_, &mu_, std::min(until, heard_ + silence_));
  }
}

absl::StatusOr<std::vector<Event>> ConsumerReader::TakeBuffered(int max_events) {
  std::vector<Event> events;
  {
    base::MutexLock lock(&mu_);
    if (!buffer_.front().ok()) return buffer_.front().status();
    while (!buffer_.empty() && buffer_.front().ok() &&
           events.size() < static_cast<size_t>(max_events)) {
      buffered_bytes_ -= BytesOf(*buffer_.front());
      events.push_back(*std::move(buffer_.front()));
      buffer_.pop_front();
    }
    place_ += static_cast<int64_t>(events.size());
  }
  PullAhead();
  return events;
}

bool ConsumerReader::HasRoomLocked() const {
  return pulled_ == 0 && buffer_.size() <= kPullEvents / 2 && buffered_bytes_ <= kPullBytes / 2;
}

// A failure shows when the buffer is empty.
void ConsumerReader::PullAhead() {
  {
    base::MutexLock lock(&mu_);
    if (broken_ || cancelled_ || !HasRoomLocked()) return;
  }
  Pull().IgnoreError();
}

absl::Status ConsumerReader::Pull() {
  bool is_blind = false;
  {
    base::MutexLock lock(&mu_);
    is_blind = clock_->Monotonic() - pull_ended_ > kMaxBlind && buffer_.empty();
  }
  if (is_blind) MUSTER_RETURN_IF_ERROR(CheckPlace());
  {
    base::MutexLock lock(&mu_);
    pulled_ = kPullEvents;
    heard_ = clock_->Monotonic();
  }
  const std::string wish = json{{"batch", kPullEvents},
                                {"max_bytes", kPullBytes},
                                {"expires", absl::ToInt64Nanoseconds(pull_expires_)},
                                {"idle_heartbeat", absl::ToInt64Nanoseconds(heartbeat_)}}
                               .dump();
  const absl::Status sent = jetstream_->connection()->Publish(
      {.subject = absl::StrCat("$JS.API.CONSUMER.MSG.NEXT.", partition_.stream, ".", consumer_),
       .data = wish,
       .reply = inbox_->ReplySubject(consumer_)});
  if (sent.ok()) return sent;
  base::MutexLock lock(&mu_);
  broken_ = true;
  return base::Annotate(sent, partition_.name);
}

absl::Status ConsumerReader::Resume() {
  LeaveConsumer();
  MUSTER_RETURN_IF_ERROR(CheckPlace());
  int64_t place = 0;
  {
    base::MutexLock lock(&mu_);
    if (gaps_ > 1) {
      gaps_ = 0;
      return absl::DataLossError(absl::StrCat(partition_.name, " event ", place_, " is lost"));
    }
  }
  MUSTER_ASSIGN_OR_RETURN(consumer_, inbox_->Register(this));
  {
    base::MutexLock lock(&mu_);
    place = expected_ = place_;
    pulled_ = 0;
    broken_ = false;
    pull_ended_ = clock_->Monotonic();
  }
  const absl::Status made = MakeConsumer(consumer_, place);
  if (made.ok()) return Pull();
  base::MutexLock lock(&mu_);
  broken_ = true;
  return base::Annotate(made, partition_.name);
}

absl::Status ConsumerReader::MakeConsumer(const std::string& consumer, int64_t place) {
  const json config = {
      {"name", consumer},
      {"deliver_policy", "by_start_sequence"},
      {"opt_start_seq", place},
      {"ack_policy", "none"},
      {"replay_policy", "instant"},
      {"inactive_threshold", absl::ToInt64Nanoseconds(kConsumerExpires)},
      {"num_replicas", 1},
      {"mem_storage", true},
  };
  return jetstream_
      ->Call(absl::StrCat("CONSUMER.CREATE.", partition_.stream, ".", consumer),
             {{"stream_name", partition_.stream}, {"config", config}})
      .status();
}

// The server removes it without our waiting for that, and in any case after kConsumerExpires.
void ConsumerReader::LeaveConsumer() {
  if (consumer_.empty()) return;
  inbox_->Unregister(consumer_);
  if (jetstream_->connection()->connected()) {
    jetstream_->connection()
        ->Publish({.subject =
                       absl::StrCat("$JS.API.CONSUMER.DELETE.", partition_.stream, ".", consumer_)})
        .IgnoreError();
  }
  consumer_.clear();
}

absl::Status ConsumerReader::CheckPlace() {
  const absl::StatusOr<nats::StreamState> state = jetstream_->GetStream(partition_.stream);
  base::MutexLock lock(&mu_);
  if (absl::IsNotFound(state.status()) || (state.ok() && state->created != partition_.created)) {
    broken_ = true;
    return absl::NotFoundError(absl::StrCat(partition_.name, " was deleted"));
  }
  if (!state.ok()) return base::Annotate(state.status(), partition_.name);
  const PartitionExtent extent = ExtentOf(*state);
  known_next_ = extent.next;
  if (extent.first <= place_ && place_ <= extent.next) return absl::OkStatus();
  broken_ = true;
  return absl::OutOfRangeError(
      absl::StrCat(partition_.name, " event ", place_,
                   place_ < extent.first ? ": it is no longer kept" : " lies beyond the end",
                   "; events are kept from ", extent.first, " to ", extent.next - 1));
}

void ConsumerReader::OnReconnect() {
  base::MutexLock lock(&mu_);
  broken_ = true;
  changed_.NotifyAll();
}

void ConsumerReader::Take(const nats::Incoming& message) {
  base::MutexLock lock(&mu_);
  if (broken_) return;
  heard_ = clock_->Monotonic();
  if (message.status != 0) {
    TakeStatusLocked(message);
  } else {
    TakeEventLocked(message);
  }
}

void ConsumerReader::TakeStatusLocked(const nats::Incoming& status) {
  if (status.status == kHeartbeatStatus) return;
  pulled_ = 0;
  pull_ended_ = heard_;
  if (!EndsPullOnly(status)) broken_ = true;
  changed_.NotifyAll();
}

void ConsumerReader::TakeEventLocked(const nats::Incoming& message) {
  const std::optional<Delivery> delivery = DeliveryIn(message.reply);
  if (!delivery.has_value()) return;
  changed_.NotifyAll();
  if (delivery->sequence != expected_) {
    ++gaps_;  // lost on its way or, if the next consumer finds the gap, too, in the stream
    broken_ = true;
    return;
  }
  gaps_ = 0;
  absl::StatusOr<NewEvent> content =
      DecodeContent(message.data, absl::StrCat(partition_.name, " event ", delivery->sequence));
  if (content.ok()) {
    buffer_.push_back(Event{delivery->sequence, delivery->time, std::move(content->key),
                            std::move(content->body), std::move(content->properties)});
    buffered_bytes_ += BytesOf(*buffer_.back());
  } else {
    buffer_.push_back(content.status());
  }
  ++expected_;
  known_next_ = std::max(known_next_, expected_ + delivery->pending);
  if (--pulled_ == 0) pull_ended_ = heard_;
}

}  // namespace muster::stream::jetstream
