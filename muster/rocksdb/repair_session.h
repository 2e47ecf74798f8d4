// SPDX-License-Identifier: Apache-2.0

// RepairSession: checks and repairs the records of one database. The check of a part reads through
// the families, reports what it finds, and adds the writes that repair it. At the end a repair
// makes all those writes at once, after the quarantine holds what they take away.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/os/quarantine.h"
#include "muster/rocksdb/database.h"
#include "muster/rocksdb/record_cursor.h"
#include "muster/rocksdb/salvage.h"
#include "rocksdb/write_batch.h"

namespace muster::rocksdb {

// Not thread-safe.
class RepairSession {
 public:
  // `part` is the part's name in Damage. Errors as OpenToSalvage; what `check` points to outlives
  // the session.
  static absl::StatusOr<std::unique_ptr<RepairSession>> Open(const std::string& dir,
                                                             std::string part,
                                                             const DatabaseOptions& options,
                                                             const os::CheckOptions& check,
                                                             bool may_begin_anew);

  using Visit = absl::FunctionRef<absl::Status(absl::string_view key, absl::string_view value)>;
  // Visits each record of `family` from the key `from` on, up to but without `end` ("": to the
  // last). DataLoss when unreadable records may follow; other errors are the visitor's, or the
  // disk's.
  absl::Status ForEach(size_t family, Visit visit, absl::string_view from = "",
                       absl::string_view end = "") const;
  // For reading two families side by side. The caller checks the cursor's status when it has ended.
  RecordCursor Read(size_t family, absl::string_view from = "") const;
  void Count(uint64_t records) { summary_.records += records; }

  os::StoredRecord Stored(size_t family, absl::string_view key, absl::string_view value) const;

  // Reports `damage` after filling in its part. A repair takes its records away.
  absl::Status Found(os::Damage damage);
  // A write that belongs to the repair of the damage reported last.
  void Put(size_t family, absl::string_view key, absl::string_view value);

  // A write of a repair that improves what is sound.
  void Improve(size_t family, absl::string_view key, absl::string_view value);
  // Tells that there is such a write.
  void Note(absl::string_view line);

  // Writes the repair, if there is one to write.
  absl::StatusOr<os::CheckSummary> Finish();

 private:
  RepairSession(std::string part, const DatabaseOptions& options, const os::CheckOptions& check)
      : part_(std::move(part)), options_(options), check_(check) {}
  absl::Status Tell(const os::Damage& damage);
  SalvageOptions Salvage(bool may_begin_anew);

  const std::string part_;
  const DatabaseOptions options_;
  const os::CheckOptions check_;
  std::unique_ptr<Database> database_;
  ::rocksdb::WriteBatch mend_;
  os::CheckSummary summary_;
};

}  // namespace muster::rocksdb
