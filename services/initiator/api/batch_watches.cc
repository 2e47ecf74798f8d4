// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/api/batch_watches.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "muster/base/proto_time.h"
#include "muster/base/retry.h"
#include "muster/rpc/server.h"
#include "muster/rpc/status.h"
#include "muster/v1/batch.pb.h"
#include "muster/v1/batch_service.grpc.pb.h"

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

class BatchWatches::Watcher final : public rpc::WritingCall {
 public:
  explicit Watcher(BatchWatches* watches) : WritingCall(watches), watches_(watches) {
    context_.AsyncNotifyWhenDone(&over_);
    watches_->request_(&context_, &request_, &stream_, watches_->queue(), &begun_);
  }
  ~Watcher() override {
    base::MutexLock lock(&watches_->mu_);
    if (is_watching_) LeaveLocked();
  }

  void Do(Action action) override {
    if (action == Action::kWrite) {
      // It goes at once: a watcher waits for long, and most have nothing to write.
      const auto response = std::move(response_);
      stream_.Write(*response, &written_);
    }
    if (action == Action::kFinish) {
      stream_.Finish(rpc::ToGrpc(rpc::WithAdvice(end_)), &finished_);
    }
  }

 private:
  void Begin() override {
    if (watches_->expects_more()) new Watcher(watches_);
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
  }

  Action DecideLocked() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(watches_->mu_) {
    if (left_) {
      EndWith(absl::CancelledError("the caller of this watch has left"));
    } else if (watches_->draining_) {
      EndWith(absl::UnavailableError("this initiator is about to stop: watch on"));
    }
    if (!ends_) {
      const Watched& watched = watches_->watched_[batch_];
      if (watched.done < waits_for_) return Action::kNone;
      if (!watched.error.ok()) {
        EndWith(watched.error);
      } else if (told_ != watched.version) {
        Take(watched);
        return Action::kWrite;
      } else if (IsOver(*watched.status)) {
        EndWith(absl::OkStatus());
      }
    }
    return ends_ ? Action::kFinish : Action::kNone;
  }

  BatchWatches* const watches_;  // not owned
  v1::WatchBatchRequest request_;
  uint64_t batch_ = 0;
  Writer stream_{&context_};
  // All guarded by the lock of `watches_`, but the response is of the thread that writes it.
  std::unique_ptr<v1::WatchBatchResponse> response_;
  uint64_t revision_ = 0;  // of the last status that was written
  uint64_t told_ = 0;      // its version
  // The first computation that has seen all that was so when the call came.
  uint64_t waits_for_ = 0;
  absl::Status end_;   // what the call ends with
  bool ends_ = false;  // with `end_`, as soon as nothing is written
  bool is_watching_ = false;
};

BatchWatches::BatchWatches(Source source, Request request, base::Clock* clock, size_t max_watches)
    : source_(std::move(source)),
      request_(std::move(request)),
      clock_(clock),
      max_watches_(max_watches) {}

BatchWatches::~BatchWatches() { End(); }

void BatchWatches::ExpectFirst() { new Watcher(this); }

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

void BatchWatches::End() {
  QueuedCalls::End();
  if (rounds_.joinable()) {
    rounds_.request_stop();
    source_.announce();
    rounds_.join();
  }
  workers_.reset();
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

}  // namespace muster::initiator::api
