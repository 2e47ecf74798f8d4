// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/api/batch_watches.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "muster/base/proto_time.h"
#include "muster/base/retry.h"
#include "muster/rpc/queued_call.h"
#include "muster/rpc/status.h"
#include "muster/v1/batch.pb.h"

namespace muster::initiator::api {

namespace {

// Splitting announces no news: a round looks how far it is at this interval.
constexpr absl::Duration kLookInterval = absl::Milliseconds(200);
// The shortest pause between two rounds.
constexpr absl::Duration kMinPause = absl::Milliseconds(1);
// A round does not wait longer for statuses that do not come; those watchers hear them later.
constexpr absl::Duration kRoundPatience = absl::Milliseconds(200);
// Statuses that are computed at a time.
constexpr int kThreads = 4;

// Whether `a` and `b` differ in nothing but the revision and the values that change with time
// alone; a watcher then learns nothing new.
bool SaysTheSame(v1::BatchStatus a, v1::BatchStatus b) {
  for (v1::BatchStatus* status : {&a, &b}) {
    status->clear_revision();
    status->clear_seconds();
    status->clear_transactions_per_second();
    // That it is late is news; by how much grows with time.
    const bool is_late = base::FromProto(status->late_by()) > absl::ZeroDuration();
    if (is_late) *status->mutable_late_by() = base::ToProto(absl::Seconds(1));
  }
  return a.SerializeAsString() == b.SerializeAsString();
}

bool IsOver(const v1::BatchStatus& status) {
  return status.state() == v1::BATCH_STATE_COMPLETE || status.state() == v1::BATCH_STATE_CANCELLED;
}

}  // namespace

// A step is decided under the lock (NextLocked) and done without it. After a decision to write,
// `writing_` stays set, and the call is not finished while it is: so the call, and this object,
// live until the deciding thread has done the write.
class BatchWatches::Watcher final : public rpc::QueuedCall {
 public:
  explicit Watcher(BatchWatches* watches) : watches_(watches) {
    {
      base::MutexLock lock(&watches_->mu_);
      ++watches_->calls_;
    }
    context_.AsyncNotifyWhenDone(&over_);
    watches_->request_(&context_, &request_, &stream_, watches_->queue_.get(), &begun_);
  }
  ~Watcher() override {
    base::MutexLock lock(&watches_->mu_);
    if (is_watching_) LeaveLocked();
    if (--watches_->calls_ == 0) watches_->call_over_.NotifyAll();
  }

  void On(Event event, bool ok) override {
    if (event == Event::kBegun && !ok) {
      delete this;
      return;
    }
    if (event == Event::kBegun) Begin();
    Action action = Action::kNone;
    bool nothing_to_come = false;
    {
      base::MutexLock lock(&watches_->mu_);
      NoteLocked(event, ok);
      nothing_to_come = over_seen_ && finish_seen_;
      action = watches_->NextLocked(this);
    }
    Do(action);
    if (nothing_to_come) delete this;
  }

  void Do(Action action) {
    if (action == Action::kWrite) stream_.Write(*response_, &written_);
    if (action == Action::kFinish) {
      stream_.Finish(rpc::ToGrpc(rpc::WithAdvice(end_)), &finished_);
    }
  }

 private:
  friend class BatchWatches;

  void Begin() {
    watches_->Expect();
    batch_ = request_.batch();
    revision_ = request_.after_revision();
    // Whatever else the caller has sent goes at once: a watch lasts for long.
    v1::WatchBatchRequest().Swap(&request_);
    watches_->BeginRounds();
    {
      base::MutexLock lock(&watches_->mu_);
      if (watches_->watches_ >= watches_->max_watches_) {
        EndWith(absl::ResourceExhaustedError(absl::StrCat(
            watches_->max_watches_, " clients watch already: ask GetBatch meanwhile")));
        return;
      }
      is_watching_ = true;
      ++watches_->watches_;
      Watched& watched = watches_->watched_[batch_];
      watched.watchers.insert(this);
      waits_for_ = watched.begun + 1;
    }
    watches_->source_.announce();
  }

  void LeaveLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(watches_->mu_) {
    is_watching_ = false;
    --watches_->watches_;
    watches_->watched_[batch_].watchers.erase(this);
    watches_->ForgetLocked(batch_);
  }

  // The first reason counts.
  void EndWith(const absl::Status& status) {
    if (!ends_) end_ = status;
    ends_ = true;
  }

  // Takes the status of its batch for its next write.
  void Take(const Watched& watched) {
    told_ = watched.version;
    revision_ = std::max(watched.status->revision(), revision_ + 1);
    response_ = std::make_unique<v1::WatchBatchResponse>();
    *response_->mutable_status() = *watched.status;
    response_->mutable_status()->set_revision(revision_);
    writing_ = true;
  }

  void NoteLocked(Event event, bool ok) ABSL_EXCLUSIVE_LOCKS_REQUIRED(watches_->mu_) {
    switch (event) {
      case Event::kBegun:
        break;
      case Event::kWritten:
        writing_ = false;
        response_.reset();  // a watcher waits for long, and most have nothing to write
        left_ |= !ok;
        break;
      case Event::kFinished:
        finish_seen_ = true;
        break;
      case Event::kOver:
        over_seen_ = left_ = true;
        break;
    }
  }

  BatchWatches* const watches_;  // not owned
  grpc::ServerContext context_;
  v1::WatchBatchRequest request_;
  uint64_t batch_ = 0;
  Writer stream_{&context_};
  Tag begun_{this, Event::kBegun};
  Tag written_{this, Event::kWritten};
  Tag finished_{this, Event::kFinished};
  Tag over_{this, Event::kOver};
  // All guarded by the lock of `watches_`; the response is gRPC's while `writing_`.
  std::unique_ptr<v1::WatchBatchResponse> response_;
  uint64_t revision_ = 0;  // of the last status that was written
  uint64_t told_ = 0;      // its version
  // The first computation that has seen all that was so when the call came.
  uint64_t waits_for_ = 0;
  absl::Status end_;   // what the call ends with
  bool ends_ = false;  // with `end_`, as soon as nothing is written
  bool is_watching_ = false;
  bool writing_ = false;
  bool left_ = false;       // the peer has gone
  bool finishing_ = false;  // Finish was decided on
  bool finish_seen_ = false, over_seen_ = false;
};

BatchWatches::BatchWatches(Source source, Request request, base::Clock* clock, size_t max_watches)
    : source_(std::move(source)),
      request_(std::move(request)),
      clock_(clock),
      max_watches_(max_watches) {}

BatchWatches::~BatchWatches() { End(); }

void BatchWatches::Serve(std::unique_ptr<grpc::ServerCompletionQueue> queue) {
  queue_ = std::move(queue);
  Expect();
  thread_ = std::thread([this] { rpc::RunCalls(queue_.get()); });
}

void BatchWatches::Drain() {
  std::vector<Step> steps;
  {
    base::MutexLock lock(&mu_);
    draining_ = true;
    for (auto& [batch, watched] : watched_) {
      for (Watcher* watcher : watched.watchers) steps.emplace_back(watcher, NextLocked(watcher));
    }
  }
  Do(steps);
}

// Nothing may be begun on a queue that was shut down, so the calls come to their end before.
void BatchWatches::End() {
  if (std::exchange(ended_, true) || queue_ == nullptr) return;
  {
    base::MutexLock lock(&mu_);
    draining_ = true;
    while (calls_ > 0) call_over_.Wait(&mu_);
  }
  queue_->Shutdown();
  thread_.join();
  if (rounds_.joinable()) {
    rounds_.request_stop();
    source_.announce();
    rounds_.join();
  }
  workers_.reset();
}

void BatchWatches::Expect() {
  {
    base::MutexLock lock(&mu_);
    if (draining_) return;
  }
  new Watcher(this);
}

void BatchWatches::BeginRounds() {
  if (workers_ != nullptr) return;
  workers_ = std::make_unique<base::WorkerPool>(kThreads);
  rounds_ = std::jthread([this](const std::stop_token& stop) { RunRounds(stop); });
}

void BatchWatches::RunRounds(const std::stop_token& stop) {
  uint64_t news = 0;
  while (!stop.stop_requested()) {
    bool anyone = false;
    {
      base::MutexLock lock(&mu_);
      if (draining_) return;  // each watch ends without further news
      anyone = !watched_.empty();
    }
    const absl::Duration began = clock_->Monotonic();
    source_.await_news(&news, anyone ? began + kLookInterval : absl::InfiniteDuration());
    if (stop.stop_requested()) return;
    const absl::Duration woken = clock_->Monotonic();
    Round();
    base::SleepUnlessStopped(clock_, std::max(kMinPause, clock_->Monotonic() - woken), stop);
  }
}

void BatchWatches::Round() {
  base::MutexLock lock(&mu_);
  for (auto& [batch, watched] : watched_) {
    if (watched.under_way || watched.watchers.empty()) continue;
    watched.under_way = true;
    ++watched.begun;
    ++under_way_;
    workers_->Add([this, number = batch] { Tell(number); });
  }
  // Late ones may have all threads but one: the others' rounds go on with that.
  const absl::Duration end = clock_->Monotonic() + kRoundPatience;
  bool is_late = false;
  while (under_way_ > (is_late ? kThreads - 1 : 0)) {
    is_late = clock_->WaitUntil(&told_, &mu_, is_late ? absl::InfiniteDuration() : end) || is_late;
  }
}

void BatchWatches::Tell(uint64_t batch) {
  absl::StatusOr<v1::BatchStatus> computed = source_.status_of(batch);
  std::vector<Step> steps;
  {
    base::MutexLock lock(&mu_);
    Watched& watched = watched_[batch];
    watched.under_way = false;
    watched.done = watched.begun;
    --under_way_;
    told_.NotifyAll();
    watched.error = computed.status();
    if (computed.ok()) {
      const bool is_new = watched.status == nullptr || !SaysTheSame(*computed, *watched.status);
      if (is_new) ++watched.version;
      watched.status = std::make_shared<const v1::BatchStatus>(*std::move(computed));
    }
    for (Watcher* watcher : watched.watchers) steps.emplace_back(watcher, NextLocked(watcher));
    ForgetLocked(batch);
  }
  Do(steps);
}

void BatchWatches::ForgetLocked(uint64_t batch) {
  const auto watched = watched_.find(batch);
  if (watched == watched_.end()) return;
  if (watched->second.watchers.empty() && !watched->second.under_way) watched_.erase(watched);
}

BatchWatches::Action BatchWatches::NextLocked(Watcher* watcher) {
  if (watcher->writing_ || watcher->finishing_) return Action::kNone;
  if (watcher->left_) {
    watcher->EndWith(absl::CancelledError("the caller of this watch has left"));
  } else if (draining_) {
    watcher->EndWith(absl::UnavailableError("this initiator is about to stop: watch on"));
  }
  if (!watcher->ends_) {
    const Watched& watched = watched_[watcher->batch_];
    if (watched.done < watcher->waits_for_) return Action::kNone;
    if (!watched.error.ok()) {
      watcher->EndWith(watched.error);
    } else if (watcher->told_ != watched.version) {
      watcher->Take(watched);
      return Action::kWrite;
    } else if (IsOver(*watched.status)) {
      watcher->EndWith(absl::OkStatus());
    }
  }
  if (!watcher->ends_) return Action::kNone;
  watcher->finishing_ = true;
  return Action::kFinish;
}

void BatchWatches::Do(const std::vector<Step>& steps) {
  for (const auto& [watcher, action] : steps) {
    // One that has nothing to do may be gone by now.
    if (action != Action::kNone) watcher->Do(action);
  }
}

}  // namespace muster::initiator::api
