// SPDX-License-Identifier: Apache-2.0

// BatchWatches: the WatchBatch calls of an initiator. They hold no threads.
//
//   client ──WatchBatch──► Watcher ─┐
//   client ──WatchBatch──► Watcher ─┼─ of one batch ◄── status, computed once ── news
//   client ──WatchBatch──► Watcher ─┘
//
// A round computes the status of each watched batch once, however many watch it, and gives it to
// those watchers that have nothing under way. A watcher that reads slowly misses statuses in
// between, and keeps none of them in memory. Between two rounds lies at least the time that the
// last one took, so that watchers never take more than a part of the machine.
//
// The status of a batch may come from a controller that hangs. So a few threads compute, and a
// batch that is under way is left out of the next rounds.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/async_stream.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/base/worker_pool.h"
#include "muster/rpc/queued_calls.h"
#include "muster/v1/batch_service.pb.h"

namespace muster::initiator::api {

// At a time; each takes some 15 KiB.
inline constexpr size_t kMaxWatches = 20'000;

// Thread-safe, but for Serve and End.
class BatchWatches final : public rpc::QueuedCalls {
 public:
  using Writer = grpc::ServerAsyncWriter<v1::WatchBatchResponse>;
  // As RequestWatchBatch of the service.
  using Request =
      std::function<void(grpc::ServerContext* context, v1::WatchBatchRequest* request,
                         Writer* writer, grpc::ServerCompletionQueue* queue, void* tag)>;
  struct Source {
    // The batch's status, as its next revision. Thread-safe; may block.
    std::function<absl::StatusOr<v1::BatchStatus>(uint64_t batch)> status_of;
    // As BatchScheduler::AwaitNews.
    std::function<void(uint64_t* seen, absl::Duration deadline)> await_news;
    // Makes an await_news that runs, or the next one, return soon.
    std::function<void()> announce;
  };

  // `clock` is not owned. `source` is used between Serve and End only, once there is a watcher.
  BatchWatches(Source source, Request request, base::Clock* clock,
               size_t max_watches = kMaxWatches);
  ~BatchWatches() override;  // End()s

  // rpc::QueuedCalls. Drain ends running calls with Unavailable: their clients watch on elsewhere,
  // or here, after the restart.
  void Drain() override ABSL_LOCKS_EXCLUDED(mu_);
  void End() override ABSL_LOCKS_EXCLUDED(mu_);

 private:
  class Watcher;

  // A batch that is watched.
  struct Watched {
    std::set<Watcher*> watchers;
    bool under_way = false;  // a thread computes its status
    uint64_t begun = 0;      // computations
    uint64_t done = 0;       // the last computation that has ended
    // Of the last status that differs from the one before; 0: there is none yet.
    uint64_t version = 0;
    std::shared_ptr<const v1::BatchStatus> status;  // shared with the watchers that write it
    absl::Status error;                             // ends its watches
  };

  void ExpectFirst() override;
  // Begins rounds with the first watcher.
  void BeginRounds() ABSL_LOCKS_EXCLUDED(mu_);
  void RunRounds(const std::stop_token& stop) ABSL_LOCKS_EXCLUDED(mu_);
  // Computes the status of each watched batch, but does not wait long for a source that hangs.
  void Round() ABSL_LOCKS_EXCLUDED(mu_);
  void Tell(uint64_t batch) ABSL_LOCKS_EXCLUDED(mu_);
  // Forgets a batch that is neither watched nor under way.
  void ForgetLocked(uint64_t batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Source source_;
  const Request request_;
  base::Clock* const clock_;  // not owned
  const size_t max_watches_;

  base::CondVar told_;
  size_t watches_ ABSL_GUARDED_BY(mu_) = 0;
  int under_way_ ABSL_GUARDED_BY(mu_) = 0;  // batches
  std::map<uint64_t, Watched> watched_ ABSL_GUARDED_BY(mu_);

  // Only of the queue's thread, and of End when that has ended.
  std::unique_ptr<base::WorkerPool> workers_;
  std::jthread rounds_;  // last: it uses all of these
};

}  // namespace muster::initiator::api
