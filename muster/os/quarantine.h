// SPDX-License-Identifier: Apache-2.0

// What a check of stored records finds, in words that all parts of a data directory share, and the
// Quarantine, where a repair puts what it takes out.
//
//   each part's check ──Damage──► Findings ──► people
//                        │
//                        └─ repair: into the Quarantine first, then out of the store
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/os/file_descriptor.h"

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
  std::string part = "";    // of the data directory: "queue", "ledger", "sync", "stream", …
  std::string kind = "";    // of record, as docs/storage_format.md calls it: "state", "body" …
  std::string name = "";    // what is damaged: "queue 'local/retail-in-0' message 12ab…"
  std::string why = "";     // "its checksum does not match"
  std::string remedy = "";  // what a repair does: "the message is taken away"
  bool mendable = true;
  std::vector<StoredRecord> records = {};  // that a repair takes away
};

// Receives each damage as it is found. Not thread-safe.
class Findings {
 public:
  virtual ~Findings() = default;
  // An error ends the check.
  virtual absl::Status Add(const Damage& damage) = 0;
  // Receives one line on what is no damage, and what a repair improves all the same.
  virtual void Note(const std::string& line) = 0;
};

// How to check a part.
struct CheckOptions {
  Findings* findings = nullptr;  // not owned
  // Not owned. Set: the check repairs the part, and puts what it takes away here. Null: the check
  // changes nothing at all.
  Quarantine* quarantine = nullptr;
};

// The result of a check of one part.
struct CheckSummary {
  uint64_t records = 0;  // that were read, sound or not
  uint64_t damaged = 0;  // findings
};

// Quarantine: where a repair puts what it takes out of a data directory, byte for byte.
//
//   DATA_DIR/damaged/N/records.jsonl    a line of JSON per record
//   DATA_DIR/damaged/N/PART/…           whole files: logs, tables, blobs
//
// N counts the repairs, from 1. A line of records.jsonl has the members part, kind, name, why,
// family, key (hexadecimal) and value (base64).

// Not thread-safe.
class Quarantine {
 public:
  // Makes its folder when there is something to keep, not before.
  explicit Quarantine(std::string data_dir);
  Quarantine(const Quarantine&) = delete;
  Quarantine& operator=(const Quarantine&) = delete;

  // Writes down the records of `damage`.
  absl::Status Keep(const Damage& damage);
  // The folder for whole files of `part`, created if needed. The folder itself is durable.
  absl::StatusOr<std::string> FolderOf(absl::string_view part);
  // After OK, what was kept survives a power cut. Call it before taking anything out of a store.
  absl::Status Sync();

  // "" as long as nothing was kept.
  const std::string& path() const { return path_; }

 private:
  absl::Status Make();

  const std::string data_dir_;
  std::string path_;
  FileDescriptor records_;
};

}  // namespace muster::os
