// WriterLock: one writer per report. A file beside the database, because closing a second
// descriptor of the database itself would drop the locks that SQLite holds on it.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace muster::report::sqlite {

// Held until destroyed, or until the process dies.
class WriterLock {
 public:
  // Locks "<database>-lock". base::Busy: somebody else, in this process or another, writes.
  static absl::StatusOr<WriterLock> Take(const std::string& database);
  WriterLock(WriterLock&& other) noexcept;
  WriterLock& operator=(WriterLock&&) = delete;
  ~WriterLock();

 private:
  explicit WriterLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;  // -1 when moved from
};

}  // namespace muster::report::sqlite
