// UploadSyncer: makes an upload durable while more of it arrives.
#pragma once

#include <cstdint>
#include <functional>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "services/initiator/batch/upload.h"

namespace muster::initiator::batch {

// For so long the first content is left alone: a short upload is sealed by then, and its seal syncs
// it as well.
inline constexpr absl::Duration kSealPause = absl::Milliseconds(2);

// Thread-safe. One sync at a time, on a thread of its own; each is for all that was added before it
// began.
class UploadSyncer {
 public:
  // Told after each sync, on the syncer's thread, where the durable content ends.
  using OnDurable = std::function<void(uint64_t durable)>;
  // Told once, on the syncer's thread, why the content cannot be synced.
  using OnFailed = std::function<void(const absl::Status&)>;

  // Neither `upload` nor `clock` is owned.
  UploadSyncer(Upload* upload, base::Clock* clock, OnDurable on_durable, OnFailed on_failed);
  ~UploadSyncer();  // as Finish
  UploadSyncer(const UploadSyncer&) = delete;
  UploadSyncer& operator=(const UploadSyncer&) = delete;

  // More was added.
  void Wake();

  // Syncs what is left and tells of it. Nobody is told anything afterwards. Answers how the last
  // sync ended.
  absl::Status Finish();

  // As Finish, but leaves what is left to the upload's own Seal.
  absl::Status HandOver();

 private:
  void Run();
  // False: there is nothing more to sync, ever.
  bool AwaitMore();

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
  bool busy_ ABSL_GUARDED_BY(mu_) = false;  // syncs, or tells of it
  absl::Status status_ ABSL_GUARDED_BY(mu_);

  std::thread thread_;  // last: it uses all of these
};

}  // namespace muster::initiator::batch
