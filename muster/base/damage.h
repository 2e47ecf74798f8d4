// SPDX-License-Identifier: Apache-2.0

// Counts where this process has met damaged bytes in what is stored. Each process has one set of
// counters, as it has one log: the code that meets damage has no registry of metrics at hand.
#pragma once

#include <cstdint>

namespace muster::base {

enum class Damaged {
  kStore,    // a record of an embedded store: queues, ledger, records, streams
  kReport,   // a page or a table of the report
  kBlob,     // a blob, in a file or on a NATS server
  kContent,  // the content of a batch, which is not what its submitter sealed
};

// Call it where a checksum or the form shows the damage. Thread-safe.
void NoteDamage(Damaged what);

// How often NoteDamage was called with `what`. Damage that stays is met again and again.
uint64_t DamageMet(Damaged what);

}  // namespace muster::base
