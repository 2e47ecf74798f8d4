// Quarantine: where a repair puts what it takes out of a data directory, byte for byte.
//
//   DATA_DIR/damaged/N/records.jsonl    a line of JSON per record
//   DATA_DIR/damaged/N/PART/…           whole files: logs, tables, blobs
//
// N counts the repairs, from 1. A line of records.jsonl has the members part, kind, name, why,
// family, key (hexadecimal) and value (base64).
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/os/damage.h"

namespace muster::os {

// Not thread-safe.
class Quarantine {
 public:
  // Makes its folder when there is something to keep, not before.
  explicit Quarantine(std::string data_dir);
  ~Quarantine();
  Quarantine(const Quarantine&) = delete;
  Quarantine& operator=(const Quarantine&) = delete;

  // Writes down the records of `damage`.
  absl::Status Keep(const Damage& damage);
  // A folder for whole files of `part`; made if need be.
  absl::StatusOr<std::string> FolderOf(absl::string_view part);
  // What was kept survives a power cut. Comes before anything is taken out of a store.
  absl::Status Sync();

  // "" as long as nothing was kept.
  const std::string& path() const { return path_; }

 private:
  absl::Status Make();

  const std::string data_dir_;
  std::string path_;
  int records_fd_ = -1;  // owned
};

// `file` and what a directory entry of it needs, on disk.
absl::Status SyncPath(const std::string& path);

}  // namespace muster::os
