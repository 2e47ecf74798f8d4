// SPDX-License-Identifier: Apache-2.0

// ItemContent: the seam to the bytes of work items whose messages only refer to them (a claim
// check). The bytes lie in the source of the item's batch: the input file of `muster run`, or the
// upload that the batch's initiator has synced. The batch's ledger knows where in the source an
// item lies; the message knows only whose item it is, and the hash of its bytes.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "muster/base/fingerprint.h"

namespace muster::content {

// What the message of an item says of its content.
struct ItemReference {
  uint64_t batch = 0;
  uint32_t index = 0;
  std::string owner;   // as ledger::Batch has it; empty: the batch has none
  uint64_t bytes = 0;  // of the content
  base::Fingerprint128 hash;
};

// Thread-safe.
class ItemContent {
 public:
  virtual ~ItemContent() = default;

  // Replaces `*slice` by the content of the item, which has the hash that the reference names.
  //
  // DataLoss: the source was changed, cut, damaged or removed; the batch stops, and its status says
  // so. NotFound: no ledger that answers has the batch, or the batch has ended and its content is
  // deleted. Unavailable and the like: the content cannot be read now. None of these is the
  // message's fault. InvalidArgument: it is, for the ledger has other content under the item's
  // number, or no such item and will have none. After any error `*slice` is unspecified.
  virtual absl::Status Read(const ItemReference& item, std::string* slice) = 0;

  // The caller reads these items next, in this order: an implementation may fetch them together.
  virtual void Expect(absl::Span<const ItemReference> items) {}

  // Copies the content of an item that becomes a dead letter to a place that lives as long as the
  // dead letter, unless it does so where it is: a redrive reads it again. Errors as of Read.
  virtual absl::Status KeepForRedrive(const ItemReference& item) { return absl::OkStatus(); }
};

}  // namespace muster::content
