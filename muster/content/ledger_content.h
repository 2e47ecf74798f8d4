// SPDX-License-Identifier: Apache-2.0

// LedgerContent: reads the content of items out of the sources of their batches, in the process
// that has the batches' ledger: an initiator, or `muster run`.
//
//   reference ─► boundary (ledger) ─► bytes (source) ─► hash ─┬─ the item's ─► the content
//                                                             └─ another ─► a copy that was kept,
//                                                             or
//                                                                           DataLoss
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/blob/blob_store.h"
#include "muster/content/boundary_cache.h"
#include "muster/content/item_content.h"
#include "muster/input/byte_source.h"
#include "muster/ledger/batch_ledger.h"

namespace muster::content {

// Thread-safe.
class LedgerContent final : public ItemContent {
 public:
  using Source = std::shared_ptr<const input::ByteSource>;

  struct Dependencies {
    ledger::BatchRecords* ledger = nullptr;  // not owned
    blob::BlobStore* blobs = nullptr;        // not owned; holds the copies that were kept
    // Opens the source of a batch, for one read. Thread-safe. NotFound, PermissionDenied,
    // InvalidArgument: the source is not there any more. Others: it cannot be read now.
    std::function<absl::StatusOr<Source>(uint64_t batch)> open;
    // Called with each item whose content is damaged, by the thread that reads it; may be empty.
    std::function<void(const ItemReference& item, const absl::Status& why)> on_damage = nullptr;
    // Dead letters need copies of their content, because the source is a file of a user, who may
    // delete it. False: the source stays until nothing needs it.
    bool keeps_copies = false;
  };

  explicit LedgerContent(Dependencies dependencies)
      : deps_(std::move(dependencies)), boundaries_(deps_.ledger) {}

  absl::Status Read(const ItemReference& item, std::string* slice) override;
  absl::Status KeepForRedrive(const ItemReference& item) override;

  // Copies the content of the item into the blob store, unless it is there: its source is about to
  // go. Errors as of Read.
  absl::Status Copy(const ItemReference& item);

 private:
  absl::Status ReadSource(const ItemReference& item, std::string* slice);
  // Whether there is a copy; then it is in `*slice`.
  absl::StatusOr<bool> ReadCopy(const ItemReference& item, std::string* slice);

  const Dependencies deps_;
  BoundaryCache boundaries_;
};

// Reads the item's bytes at its boundary. DataLoss: the source does not have them any more.
absl::Status ReadAt(const input::ByteSource& source, const ItemReference& item,
                    const ledger::ItemBoundary& boundary, std::string* slice);

}  // namespace muster::content
