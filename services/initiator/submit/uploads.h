// SPDX-License-Identifier: Apache-2.0

// Uploads: the folder with the content of this initiator's batches, one file for each batch, except
// for inline content (kMaxInlineContentBytes in source.h). A file stays for some time after its
// batch is complete: any item can be made again from it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/content/content_store.h"
#include "muster/input/byte_source.h"
#include "muster/ledger/batch_ledger.h"
#include "services/initiator/submit/upload.h"

namespace muster::initiator::submit {

// Thread-safe.
class Uploads final : public content::ContentStore {
 public:
  // Creates the folder if it is missing. Unavailable: it cannot be created. `clock` says when
  // content arrives, and is not owned.
  static absl::StatusOr<std::unique_ptr<Uploads>> Open(const std::string& folder,
                                                       base::Clock* clock = base::RealClock());

  // The path of the whole content within the folder's parent, the data directory.
  std::string ContentPathOf(uint64_t batch) const;

  // content::ContentStore
  bool Stores(const ledger::Batch& batch) const override;
  std::string PathOf(uint64_t batch) const override;
  absl::StatusOr<std::shared_ptr<const input::ByteSource>> OpenContent(uint64_t batch) override
      ABSL_LOCKS_EXCLUDED(mu_);
  std::optional<uint64_t> DurableBytes(uint64_t batch) override ABSL_LOCKS_EXCLUDED(mu_);
  bool IsSealed(uint64_t batch) const override;
  std::optional<Arrived> ArrivedOf(uint64_t batch) override ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<std::shared_ptr<const input::ByteSource>> EndArrival(
      uint64_t batch, const absl::Status& why) override ABSL_LOCKS_EXCLUDED(mu_);
  void Refuse(uint64_t batch, const absl::Status& why) override ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status Delete(uint64_t batch) override ABSL_LOCKS_EXCLUDED(mu_);

  // The file with the content of an upload, whole or not. NotFound: there is none.
  absl::StatusOr<std::string> FileOf(const ledger::Batch& batch) const;
  // The content of any batch of this initiator, to read items that are recorded. NotFound,
  // PermissionDenied, InvalidArgument: it is not there any more.
  absl::StatusOr<std::shared_ptr<const input::ByteSource>> OpenRecorded(
      const ledger::Batch& batch) const;

  // The batch's upload, begun if it is missing. Callers that hold it at the same time share one
  // object.
  absl::StatusOr<std::shared_ptr<Upload>> Get(uint64_t batch) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // The batch's open Upload; null: no caller holds one.
  std::shared_ptr<Upload> Held(uint64_t batch) ABSL_LOCKS_EXCLUDED(mu_);

  Uploads(std::string folder, base::Clock* clock) : folder_(std::move(folder)), clock_(clock) {}

  const std::string folder_;
  base::Clock* const clock_;  // not owned
  base::Mutex mu_;
  std::map<uint64_t, std::weak_ptr<Upload>> held_ ABSL_GUARDED_BY(mu_);
};

}  // namespace muster::initiator::submit
