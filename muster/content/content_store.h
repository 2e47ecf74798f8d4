// SPDX-License-Identifier: Apache-2.0

// ContentStore: where the initiator keeps the content of batches whose submitter uploads it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/input/byte_source.h"
#include "muster/ledger/batch_ledger.h"

namespace muster::content {

// Thread-safe.
class ContentStore {
 public:
  virtual ~ContentStore() = default;

  // Whether the content of `batch` belongs into this store, also if the store has moved since the
  // batch began. False: it is a file of the submitter, at the batch's source_path.
  virtual bool Stores(const ledger::Batch& batch) const = 0;

  // The absolute path of the whole content, whether it exists or not.
  virtual std::string PathOf(uint64_t batch) const = 0;

  // The content as far as it is durable: it grows until it is sealed. An empty one if nothing has
  // arrived yet.
  virtual absl::StatusOr<std::shared_ptr<const input::ByteSource>> OpenContent(uint64_t batch) = 0;

  // How much of the content is durable. nullopt: this process has not opened it.
  virtual std::optional<uint64_t> DurableBytes(uint64_t batch) = 0;

  // Whether all of the content is there.
  virtual bool IsSealed(uint64_t batch) const = 0;

  // What has arrived of content that is not whole.
  struct Arrived {
    uint64_t bytes = 0;
    absl::Time last = absl::InfinitePast();  // when the last of them arrived; this: none has
  };
  // nullopt: the content is whole, as in a store without uploads.
  virtual std::optional<Arrived> ArrivedOf(uint64_t /*batch*/) { return std::nullopt; }

  // Gives up content that is not whole: its senders get the error `why` from now on, and those that
  // open it while the caller has the answer do, too. Null: the content is whole. Otherwise as
  // OpenContent.
  virtual absl::StatusOr<std::shared_ptr<const input::ByteSource>> EndArrival(
      uint64_t /*batch*/, const absl::Status& /*why*/) {
    return nullptr;
  }

  // The batch does not need the content any more: its senders get the error `why` from now on.
  virtual void Refuse(uint64_t batch, const absl::Status& why) = 0;

  // Deletes the content, whole or not; fine where there is none. A caller that has it open can
  // still read it.
  virtual absl::Status Delete(uint64_t batch) = 0;
};

}  // namespace muster::content
