// SqliteReportReader: reads the SQLite report.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/report/report_store.h"
#include "muster/report/sqlite/connection.h"
#include "muster/report/sqlite/schema.h"

namespace muster::report::sqlite {

class SqliteReportReader final : public report::ReportReader {
 public:
  // Reads over `connection` (not owned), in the transaction that its caller began.
  explicit SqliteReportReader(Connection* connection) : connection_(connection) {}

  // Reads over a connection of its own, in a transaction that ends with the reader.
  static absl::StatusOr<std::unique_ptr<SqliteReportReader>> Open(const std::string& path);

  absl::StatusOr<std::vector<report::Progress>> Batches() override;
  absl::StatusOr<report::Progress> GetProgress(uint64_t batch) override;
  absl::StatusOr<std::vector<report::GroupShape>> Groups(uint64_t batch) override;
  absl::Status ForEachRow(uint64_t batch, absl::string_view group,
                          const std::function<void(const report::GroupRow&)>& visit) override;
  absl::Status ForEachItem(uint64_t batch,
                           const std::function<void(const report::ItemRow&)>& visit) override;
  absl::Status ForEachRejection(
      uint64_t batch, int64_t offset, int64_t max,
      const std::function<void(const report::RejectionRow&)>& visit) override;
  absl::StatusOr<std::vector<uint64_t>> UncountedItems(uint64_t batch, uint64_t item_count,
                                                       uint64_t from, size_t max) override;
  absl::StatusOr<report::StoredReceipt> GetReceipt(uint64_t batch) override;

 private:
  explicit SqliteReportReader(std::unique_ptr<Connection> connection)
      : owned_(std::move(connection)), connection_(owned_.get()) {}
  absl::StatusOr<std::vector<GroupTable>> Tables(uint64_t batch);

  std::unique_ptr<Connection> owned_;  // nullptr when the connection is another's
  Connection* connection_;
};

}  // namespace muster::report::sqlite
