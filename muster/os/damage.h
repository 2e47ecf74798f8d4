// What a check of stored records finds, in words that all parts of a data directory share.
//
//   each part's check ──Damage──► Findings ──► people
//                        │
//                        └─ repair: onto the Quarantine (quarantine.h) first, then out of the store
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace muster::os {

class Quarantine;

// A record as it is stored.
struct StoredRecord {
  std::string family;
  std::string key;
  std::string value;
};

// One thing that is wrong, and what a repair does about it.
struct Damage {
  std::string part = "";    // of the data directory: "queue", "ledger", "sync", "blobs"
  std::string kind = "";    // of record, as docs/storage_format.md calls it: "state", "body" …
  std::string name = "";    // whose it is: "queue 'local/retail-in-0' message 12ab…"
  std::string why = "";     // "its checksum does not match"
  std::string remedy = "";  // what a repair does: "the message is taken away"
  bool mendable = true;
  std::vector<StoredRecord> records = {};  // that a repair takes away
};

// Hears of each damage as it is found. Not thread-safe.
class Findings {
 public:
  virtual ~Findings() = default;
  // An error ends the check.
  virtual absl::Status Add(const Damage& damage) = 0;
};

// How a part is to be checked.
struct CheckOptions {
  Findings* findings = nullptr;  // not owned
  // Not owned. Set: the part is repaired, and what that takes away is put here. Otherwise nothing
  // at all is changed.
  Quarantine* quarantine = nullptr;
};

// What a check of one part comes to.
struct CheckSummary {
  uint64_t records = 0;  // that were read, sound or not
  uint64_t damaged = 0;  // findings
};

}  // namespace muster::os
