// SPDX-License-Identifier: Apache-2.0

// ContentWriter: writes the content of a batch that this process submits itself, from its
// beginning. What an earlier call has written of it stays: the content is the same each time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "muster/base/fingerprint.h"
#include "muster/ledger/batch_ledger.h"
#include "services/initiator/batch/upload_sender.h"
#include "services/initiator/submit/submit_whole.h"
#include "services/initiator/submit/uploads.h"

namespace muster::initiator::submit {

// Begin, Add any number of times, then Seal or GiveUp. It counts as the sender of the content until
// it is destroyed. Holds some hundred KiB. Not thread-safe.
class ContentWriter {
 public:
  explicit ContentWriter(const SubmitTools& tools) : tools_(tools) {}
  ContentWriter(const ContentWriter&) = delete;
  ContentWriter& operator=(const ContentWriter&) = delete;

  bool has_begun() const { return batch_.number != 0; }
  uint64_t batch() const { return batch_.number; }

  // Takes the upload of the batch over. Unavailable: the batch was cancelled.
  absl::Status Begin(ledger::Batch batch);
  absl::Status Add(absl::string_view bytes);
  // Returns once the content is durable, and recorded as sealed. DataLoss: an earlier call has
  // sealed other content.
  absl::Status Seal();

  // Cancels the batch, which would wait for its content for ever.
  absl::Status GiveUp(const absl::Status& why);

 private:
  absl::Status Flush();

  const SubmitTools tools_;
  ledger::Batch batch_;
  std::shared_ptr<Upload> upload_;  // as Uploads::Get has it
  uint64_t ticket_ = 0;
  uint64_t there_ = 0;  // bytes that an earlier call has left
  uint64_t size_ = 0;   // bytes before piece_
  base::Fingerprinter hash_;
  std::string piece_;
  std::optional<batch::UploadSender> sender_;  // once it has begun
};

}  // namespace muster::initiator::submit
