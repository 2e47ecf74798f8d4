// SPDX-License-Identifier: Apache-2.0

// UploadSender: one sender of a batch's content, which the scheduler counts for as long as it
// lives: an upload that has none may expire.
#pragma once

#include <cstdint>

#include "services/initiator/batch/scheduler.h"

namespace muster::initiator::batch {

class UploadSender {
 public:
  // `scheduler` is not owned.
  UploadSender(BatchScheduler* scheduler, uint64_t batch) : scheduler_(scheduler), batch_(batch) {
    scheduler_->NoteSender(batch_);
  }
  ~UploadSender() { scheduler_->NoteSenderGone(batch_); }
  UploadSender(const UploadSender&) = delete;
  UploadSender& operator=(const UploadSender&) = delete;

 private:
  BatchScheduler* const scheduler_;  // not owned
  const uint64_t batch_;
};

}  // namespace muster::initiator::batch
