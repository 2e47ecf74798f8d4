// SPDX-License-Identifier: Apache-2.0

// FailureLog: which failures of programs the log tells, when items fail one after the other.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "muster/base/mutex.h"
#include "muster/handler/health_troubles.h"

namespace muster::handler::command {

// So many failures in a row are told each, and then one whenever they have doubled.
inline constexpr int64_t kFailuresToldEach = 3;

// Of all programs of a job. Thread-safe.
class FailureLog {
 public:
  // While `health`, which may be null, has items that fail one after the other as a trouble, no
  // more than the first failures are told: whoever notes that trouble tells of it.
  explicit FailureLog(std::shared_ptr<HealthTroubles> health) : health_(std::move(health)) {}

  struct Failure {
    int64_t in_a_row = 0;
    bool is_told = true;
  };
  // A program has failed.
  Failure Note() ABSL_LOCKS_EXCLUDED(mu_);
  // A program has answered.
  void NoteAnswer() ABSL_LOCKS_EXCLUDED(mu_);
  // Whether a failure that came next would be told.
  bool TellsNext() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  bool TellsLocked(int64_t failures) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::shared_ptr<HealthTroubles> health_;  // shared as in CommandOptions
  mutable base::Mutex mu_;
  std::atomic<int64_t> failures_{0};  // in a row; written under mu_
  int64_t told_at_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace muster::handler::command
