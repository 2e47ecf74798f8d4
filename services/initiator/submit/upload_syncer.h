// SPDX-License-Identifier: Apache-2.0

// UploadSyncer: syncs an upload while more of it arrives.
#pragma once

#include <cstdint>
#include <functional>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "services/initiator/submit/upload.h"

namespace muster::initiator::submit {

// The syncer waits so long before its first sync: a short upload is sealed by then, and its seal
// syncs it.
inline constexpr absl::Duration kSealPause = absl::Milliseconds(2);

// For one thread. Syncs on a thread of its own, which begins with the first content, one sync at a
// time; each covers all that was added before it began.
class UploadSyncer {
 public:
  // Called on the syncer's thread after each sync, with the end of the durable content.
  using OnDurable = std::function<void(uint64_t durable)>;
  // Called once, on the syncer's thread, with the reason why a sync has failed.
  using OnFailed = std::function<void(const absl::Status&)>;

  // Neither `upload` nor `clock` is owned.
  UploadSyncer(Upload* upload, base::Clock* clock, OnDurable on_durable, OnFailed on_failed);
  ~UploadSyncer();  // as Finish
  UploadSyncer(const UploadSyncer&) = delete;
  UploadSyncer& operator=(const UploadSyncer&) = delete;

  // The writer has added content: sync it.
  void Wake() ABSL_LOCKS_EXCLUDED(mu_);

  // Syncs the rest and calls OnDurable for it. Makes no calls afterwards. Answers the status of the
  // last sync.
  absl::Status Finish() ABSL_LOCKS_EXCLUDED(mu_);

  // As Finish, but leaves the rest to Upload::Seal.
  absl::Status HandOver() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mu_);
  // False: nothing is left to sync, and no more will come.
  bool AwaitMore() ABSL_LOCKS_EXCLUDED(mu_);

  Upload* const upload_;      // not owned
  base::Clock* const clock_;  // not owned
  const OnDurable on_durable_;
  const OnFailed on_failed_;

  base::Mutex mu_;
  base::CondVar changed_;
  bool more_ ABSL_GUARDED_BY(mu_) = false;
  bool finishing_ ABSL_GUARDED_BY(mu_) = false;
  bool handed_over_ ABSL_GUARDED_BY(mu_) = false;
  bool is_first_ ABSL_GUARDED_BY(mu_) = true;
  bool busy_ ABSL_GUARDED_BY(mu_) = false;  // in a sync or in a callback
  absl::Status status_ ABSL_GUARDED_BY(mu_);

  std::thread thread_;  // last: it uses all of these
};

}  // namespace muster::initiator::submit
