// SPDX-License-Identifier: Apache-2.0

// Report: the rival's totals in SQLite (WAL, synchronous=FULL). Each item counts once, however
// often its result comes. Not thread-safe.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "bench/retail/totals.h"

namespace rival {

class Report {
 public:
  explicit Report(const std::string& path);
  ~Report();
  Report(const Report&) = delete;
  Report& operator=(const Report&) = delete;

  // Adds the partials whose items are not counted yet, in one transaction that is then on disk.
  void Add(absl::Span<const absl::string_view> partials);

  // The counts since the report was opened.
  int64_t items() const { return items_; }
  int64_t transactions() const { return transactions_; }
  int64_t rejected() const { return rejected_; }
  // As bench::GroupsJson, from the database.
  std::string GroupsJson();

 private:
  void Execute(const char* sql);
  sqlite3_stmt* Prepare(const char* sql);
  void Run(sqlite3_stmt* statement);
  bool IsNew(uint64_t item);
  void AddRow(const char* group, absl::string_view key, absl::string_view month,
              const bench::Sums& sums);

  sqlite3* database_ = nullptr;
  sqlite3_stmt* count_ = nullptr;
  sqlite3_stmt* add_ = nullptr;
  int64_t items_ = 0;
  int64_t transactions_ = 0;
  int64_t rejected_ = 0;
};

}  // namespace rival
