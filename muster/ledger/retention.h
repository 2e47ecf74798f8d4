// SPDX-License-Identifier: Apache-2.0

// Retention: how long the parts of a batch are kept after its end.
#pragma once

#include "absl/time/time.h"

namespace muster::ledger {

// From the end of the batch, complete or cancelled. content <= items <= batch.
struct Retention {
  // Of the source and of large items: a queue that loses something later cannot be filled again,
  // and nothing can be lost of a batch that is complete. A day lets an operator look into it.
  absl::Duration content = absl::Hours(24);
  // Of the items' boundaries and hashes, which a receipt is compared with. Dead-lettered items can
  // be redriven until then.
  absl::Duration items = absl::Hours(24 * 30);
  // Of all the rest: the batch's record, what the report counted, and the receipt. A year and a
  // month: a yearly audit still finds all of it.
  absl::Duration batch = absl::Hours(24 * 400);

  friend bool operator==(const Retention&, const Retention&) = default;
};

}  // namespace muster::ledger
