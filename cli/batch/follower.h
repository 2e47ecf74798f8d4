// SPDX-License-Identifier: Apache-2.0

// Follower: follows the progress of a batch on a mesh while the command does something else.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/output/environment.h"
#include "cli/output/progress_bar.h"
#include "cli/server/mesh_client.h"
#include "muster/base/mutex.h"
#include "muster/input/byte_source.h"
#include "muster/v1/batch_service.pb.h"

namespace muster::cli {

// Follows a batch on a thread of its own, for a progress bar and for its end.
class Follower {
 public:
  // Nothing is owned.
  Follower(MeshClient* mesh, const Environment* environment)
      : mesh_(mesh), environment_(environment) {}
  // Stops following.
  ~Follower();
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;

  // Follows from now on; only the first call counts.
  void Begin(uint64_t batch);

  // The last status. DeadlineExceeded: not over after `timeout`, saying how far it is and,
  // where that can be seen, why it waits. Cancelled: `stop`.
  absl::StatusOr<v1::BatchStatus> AwaitEnd(absl::Duration timeout, const std::stop_token& stop);

  // The latest progress from the initiator; nullopt: none has arrived.
  std::optional<RunProgress> progress() const;

 private:
  void Run(uint64_t batch);
  // The batch's status from the initiator now, if it has ended; else DeadlineExceeded, with it.
  absl::StatusOr<v1::BatchStatus> LastLook();

  MeshClient* const mesh_;                // not owned
  const Environment* const environment_;  // not owned
  std::stop_source stop_;

  std::atomic<uint64_t> batch_ = 0;  // the batch that Begin named

  mutable base::Mutex mu_;
  base::CondVar changed_;
  std::optional<v1::BatchStatus> latest_ ABSL_GUARDED_BY(mu_);
  std::optional<absl::StatusOr<v1::BatchStatus>> end_ ABSL_GUARDED_BY(mu_);
  std::thread thread_ ABSL_GUARDED_BY(mu_);
};

// A bar on stderr of what `follower` learns, which outlives it.
std::unique_ptr<ProgressBar> BarOf(const Follower& follower, const Environment& environment);

}  // namespace muster::cli
