// SPDX-License-Identifier: Apache-2.0
#include "services/initiator/submit/upload_syncer.h"

#include <utility>

namespace muster::initiator::submit {

UploadSyncer::UploadSyncer(Upload* upload, base::Clock* clock, OnDurable on_durable,
                           OnFailed on_failed)
    : upload_(upload),
      clock_(clock),
      on_durable_(std::move(on_durable)),
      on_failed_(std::move(on_failed)) {}

UploadSyncer::~UploadSyncer() { (void)Finish(); }

void UploadSyncer::Wake() {
  {
    base::MutexLock lock(&mu_);
    more_ = true;
    changed_.NotifyAll();
  }
  if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
}

absl::Status UploadSyncer::Finish() {
  {
    base::MutexLock lock(&mu_);
    finishing_ = true;
    changed_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
  base::MutexLock lock(&mu_);
  return status_;
}

// Does not join the thread: it may take longer to wake than the seal takes.
absl::Status UploadSyncer::HandOver() {
  base::MutexLock lock(&mu_);
  finishing_ = true;
  handed_over_ = true;
  changed_.NotifyAll();
  while (busy_) changed_.Wait(&mu_);
  return status_;
}

bool UploadSyncer::AwaitMore() {
  base::MutexLock lock(&mu_);
  busy_ = false;
  changed_.NotifyAll();
  while (!more_ && !finishing_) changed_.Wait(&mu_);
  const absl::Duration pause_ends = clock_->Monotonic() + kSealPause;
  while (is_first_ && !finishing_) {
    is_first_ = !clock_->WaitUntil(&changed_, &mu_, pause_ends);
  }
  is_first_ = false;
  busy_ = !handed_over_ && std::exchange(more_, false);
  return busy_;
}

void UploadSyncer::Run() {
  while (AwaitMore()) {
    const absl::Status synced = upload_->Sync();
    if (synced.ok()) {
      on_durable_(upload_->durable_size());
      continue;
    }
    on_failed_(synced);
    base::MutexLock lock(&mu_);
    status_ = synced;
    busy_ = false;
    changed_.NotifyAll();
    return;
  }
}

}  // namespace muster::initiator::submit
