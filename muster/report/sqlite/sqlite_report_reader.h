// SPDX-License-Identifier: Apache-2.0

// Readers of the SQLite report.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "muster/report/report_store.h"
#include "muster/report/sqlite/connection.h"

namespace muster::report::sqlite {

// Reads over a connection of its own, in a transaction that ends with the reader.
absl::StatusOr<std::unique_ptr<report::ReportReader>> OpenReader(const std::string& path);

// Connections between two readers: a new one reads and parses the schema, with two tables and more
// of each job, which costs more than most questions. Keeps kMaxIdleReaders of them, without a
// transaction, so that the log can be cleaned up behind them.
inline constexpr size_t kMaxIdleReaders = 4;

// Thread-safe. A reader may outlive it.
class ReaderPool {
 public:
  // `path` must be the same file from the first to the last call, or Clear is called in between.
  explicit ReaderPool(std::string path);
  ~ReaderPool();  // Clear()s
  ReaderPool(const ReaderPool&) = delete;
  ReaderPool& operator=(const ReaderPool&) = delete;

  // As OpenReader.
  absl::StatusOr<std::unique_ptr<report::ReportReader>> Read();
  // Closes the connections, also those that are in use, once their readers have ended.
  void Clear();

 private:
  class Idle;

  const std::string path_;
  // Shared with the readers that are to give their connections back.
  const std::shared_ptr<Idle> idle_;
};

// Reads over `connection` (not owned), in the transaction that its caller began.
std::unique_ptr<report::ReportReader> ReaderOver(Connection* connection);

}  // namespace muster::report::sqlite
