#include "services/initiator/upload_syncer.h"

#include <utility>

namespace muster::initiator {

UploadSyncer::UploadSyncer(Upload* upload, OnDurable on_durable, OnFailed on_failed)
    : upload_(upload),
      on_durable_(std::move(on_durable)),
      on_failed_(std::move(on_failed)),
      thread_([this] { Run(); }) {}

UploadSyncer::~UploadSyncer() { (void)Finish(); }

void UploadSyncer::Wake() {
  base::MutexLock lock(&mu_);
  more_ = true;
  changed_.NotifyAll();
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

bool UploadSyncer::AwaitMore() {
  base::MutexLock lock(&mu_);
  while (!more_ && !finishing_) changed_.Wait(&mu_);
  return std::exchange(more_, false);
}

void UploadSyncer::Run() {
  while (AwaitMore()) {
    const absl::Status synced = upload_->Sync();
    if (synced.ok()) {
      on_durable_(upload_->durable_size());
      continue;
    }
    {
      base::MutexLock lock(&mu_);
      status_ = synced;
    }
    on_failed_(synced);
    return;
  }
}

}  // namespace muster::initiator
