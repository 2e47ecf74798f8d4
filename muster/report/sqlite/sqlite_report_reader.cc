// SPDX-License-Identifier: Apache-2.0
#include "muster/report/sqlite/sqlite_report_reader.h"

#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/mutex.h"
#include "muster/base/output_record.h"
#include "muster/base/status.h"
#include "muster/report/counted_item.h"
#include "muster/report/sqlite/batch_rows.h"
#include "muster/report/sqlite/item_rows.h"
#include "muster/report/sqlite/output_rows.h"
#include "muster/report/sqlite/removal.h"
#include "muster/report/sqlite/retries.h"
#include "muster/report/sqlite/schema.h"

namespace muster::report::sqlite {
namespace {

// A stored decimal must be just as it was written: "07" or too few decimals is damage.
std::optional<base::Decimal> MeasureOf(const Statement& row, int column,
                                       const report::MeasureShape& shape) {
  if (shape.is_int) return base::Decimal::FromInt(row.Int(column));
  const std::optional<base::Decimal> value = base::Decimal::TryParse(row.Text(column));
  if (!value || value->scale() != shape.scale || value->ToString() != row.Text(column)) {
    return std::nullopt;
  }
  return value;
}

absl::StatusOr<report::GroupRow> GroupRowOf(const Statement& row, const report::GroupShape& shape) {
  report::GroupRow result;
  int column = 0;
  for (size_t i = 0; i < shape.keys.size(); ++i) result.keys.emplace_back(row.Text(column++));
  for (const report::MeasureShape& measure : shape.measures) {
    const std::optional<base::Decimal> value = MeasureOf(row, column++, measure);
    if (!value) {
      return absl::DataLossError(absl::StrCat(report::RowName(shape, result.keys), ": measure '",
                                              measure.name, "' is damaged"));
    }
    result.measures.push_back(*value);
  }
  return result;
}

report::RejectionRow RejectionRowOf(const Statement& row) {
  report::RejectionRow rejection;
  rejection.item = static_cast<uint64_t>(row.Int(0));
  rejection.line = row.Int(1);
  rejection.reason = std::string(row.Text(2));
  rejection.retried_in = static_cast<uint64_t>(row.Int(3));
  rejection.retry_of_line = row.Int(4);
  return rejection;
}

// The columns that RejectionRowOf reads, of a batch that neither is a retry nor is retried.
constexpr char kRejections[] = "SELECT item, line, reason, 0, 0 FROM muster_rejection r";
// And of any. Line 0 of a claim is an item as a whole: it stands where its first transaction does.
constexpr char kRetriedRejections[] =
    "SELECT item, line, reason, coalesce((SELECT t.retried_in FROM muster_retried_line l JOIN "
    "muster_retry t ON t.retry = l.retry WHERE l.batch = r.batch AND l.item = r.item AND l.line = "
    "r.line), 0), coalesce((SELECT l.line FROM muster_retry t JOIN muster_retried_line l ON "
    "l.retry = t.retry AND l.retried_line = r.line AND l.line > 0 WHERE t.retried_in = r.batch), "
    "0) FROM muster_rejection r";

using TakeBack = std::function<void(std::unique_ptr<Connection>)>;

class SqliteReportReader final : public report::ReportReader {
 public:
  explicit SqliteReportReader(Connection* connection) : connection_(connection) {}
  SqliteReportReader(std::unique_ptr<Connection> connection, TakeBack take_back)
      : owned_(std::move(connection)),
        connection_(owned_.get()),
        take_back_(std::move(take_back)) {}
  ~SqliteReportReader() override {
    if (take_back_) take_back_(std::move(owned_));
  }

  absl::StatusOr<uint64_t> HighestBatch() override {
    MUSTER_ASSIGN_OR_RETURN(
        const int64_t highest,
        connection_->QueryInt("SELECT coalesce(max(batch), 0) FROM muster_batch"));
    return static_cast<uint64_t>(highest);
  }

  absl::StatusOr<std::vector<std::string>> Jobs() override {
    MUSTER_ASSIGN_OR_RETURN(
        Statement query,
        connection_->Prepare("SELECT DISTINCT job FROM muster_batch ORDER BY job"));
    return query.Collect([&] { return std::string(query.Text(0)); });
  }

  absl::StatusOr<std::vector<uint64_t>> BatchesOf(absl::string_view job) override {
    MUSTER_ASSIGN_OR_RETURN(
        Statement query,
        connection_->Prepare("SELECT batch FROM muster_batch WHERE job = ? ORDER BY batch"));
    query.Bind(job);
    return query.Collect([&] { return static_cast<uint64_t>(query.Int(0)); });
  }

  absl::StatusOr<std::vector<std::string>> JobsWithoutBatches() override {
    return sqlite::JobsWithoutBatches(connection_);
  }

  absl::StatusOr<std::vector<report::Progress>> Batches() override {
    return LoadAllProgress(connection_);
  }

  absl::StatusOr<report::Progress> GetProgress(uint64_t batch) override {
    return LoadStanding(connection_, batch);
  }

  absl::StatusOr<std::vector<report::GroupShape>> Groups(uint64_t batch) override {
    MUSTER_ASSIGN_OR_RETURN(std::vector<GroupTable> tables, Tables(batch));
    std::vector<report::GroupShape> shapes;
    shapes.reserve(tables.size());
    for (GroupTable& table : tables) shapes.push_back(std::move(table.shape));
    return shapes;
  }

  absl::Status ForEachRow(uint64_t batch, absl::string_view group,
                          const std::function<void(const report::GroupRow&)>& visit) override {
    MUSTER_ASSIGN_OR_RETURN(const std::vector<GroupTable> tables, Tables(batch));
    for (const GroupTable& table : tables) {
      if (table.shape.name != group) continue;
      MUSTER_ASSIGN_OR_RETURN(Statement query, connection_->Prepare(SelectRowsSql(table)));
      query.Bind(batch);
      for (;;) {
        MUSTER_ASSIGN_OR_RETURN(const bool found, query.Step());
        if (!found) return absl::OkStatus();
        MUSTER_ASSIGN_OR_RETURN(const report::GroupRow row, GroupRowOf(query, table.shape));
        visit(row);
      }
    }
    return absl::NotFoundError(absl::StrCat("batch ", batch, " has no group '", group, "'"));
  }

  absl::Status ForEachItem(uint64_t batch,
                           const std::function<void(const report::ItemRow&)>& visit) override {
    MUSTER_ASSIGN_OR_RETURN(
        Statement query,
        connection_->Prepare(absl::StrCat("SELECT ", kItemColumns,
                                          " FROM muster_item WHERE batch = ? ORDER BY item")));
    query.Bind(batch);
    for (;;) {
      MUSTER_ASSIGN_OR_RETURN(const bool found, query.Step());
      if (!found) return absl::OkStatus();
      MUSTER_ASSIGN_OR_RETURN(const report::ItemRow item, ItemRowOf(query));
      visit(item);
    }
  }

  absl::Status ForEachRejection(
      uint64_t batch, int64_t offset, int64_t max,
      const std::function<void(const report::RejectionRow&)>& visit) override {
    MUSTER_ASSIGN_OR_RETURN(Statement query,
                            PrepareRejections(batch,
                                              " WHERE batch = ? ORDER BY item, ordinal LIMIT ? "
                                              "OFFSET ?"));
    query.Bind(batch, max, offset);
    return query.ForEach([&] { visit(RejectionRowOf(query)); });
  }

  absl::Status ForEachRejectionAfter(
      uint64_t batch, const report::RejectionPosition& after, int64_t max,
      const std::function<void(const report::RejectionRow&)>& visit) override {
    MUSTER_ASSIGN_OR_RETURN(Statement query,
                            PrepareRejections(batch,
                                              " WHERE batch = ? AND item >= ? AND (item > ? OR "
                                              "line > ?) ORDER BY item, line LIMIT ?"));
    query.Bind(batch, after.item, after.item, after.line, max);
    return query.ForEach([&] { visit(RejectionRowOf(query)); });
  }

  absl::StatusOr<std::vector<report::RejectionPosition>> ClaimedRejections(
      uint64_t batch, int64_t retry, const report::RejectionPosition& after, size_t max) override {
    return LoadClaimed(connection_, batch, retry, after, max);
  }

  absl::StatusOr<std::vector<uint64_t>> UncountedItems(uint64_t batch, uint64_t item_count,
                                                       uint64_t from, size_t max) override {
    MUSTER_RETURN_IF_ERROR(LoadProgress(connection_, batch).status());
    MUSTER_ASSIGN_OR_RETURN(Statement query,
                            connection_->Prepare("SELECT item FROM muster_item WHERE batch = ? "
                                                 "AND item >= ? ORDER BY item"));
    query.Bind(batch, from);
    std::vector<uint64_t> missing;
    uint64_t next = from;
    // Both run upwards: whatever lies between two rows is missing.
    while (next < item_count && missing.size() < max) {
      MUSTER_ASSIGN_OR_RETURN(const bool found, query.Step());
      const uint64_t counted = found ? static_cast<uint64_t>(query.Int(0)) : item_count;
      for (; next < counted && next < item_count && missing.size() < max; ++next) {
        missing.push_back(next);
      }
      ++next;
    }
    return missing;
  }

  absl::StatusOr<std::vector<uint64_t>> DeadLetteredItems(uint64_t batch, uint64_t from,
                                                          size_t max) override {
    MUSTER_RETURN_IF_ERROR(LoadProgress(connection_, batch).status());
    MUSTER_ASSIGN_OR_RETURN(Statement query,
                            connection_->Prepare("SELECT item FROM muster_item WHERE batch = ? AND "
                                                 "item >= ? AND outcome = ? ORDER BY item"));
    query.Bind(batch, from, static_cast<int>(report::ItemOutcome::kDeadLettered));
    std::vector<uint64_t> dead;
    while (dead.size() < max) {
      MUSTER_ASSIGN_OR_RETURN(const bool found, query.Step());
      if (!found) break;
      dead.push_back(static_cast<uint64_t>(query.Int(0)));
    }
    return dead;
  }

  absl::StatusOr<std::vector<report::ItemRow>> DeadLetters(uint64_t batch, uint64_t from,
                                                           size_t max) override {
    MUSTER_RETURN_IF_ERROR(LoadProgress(connection_, batch).status());
    MUSTER_ASSIGN_OR_RETURN(
        Statement query,
        connection_->Prepare(absl::StrCat("SELECT ", kItemColumns,
                                          " FROM muster_item WHERE batch = ? AND item >= ? AND "
                                          "outcome = ? ORDER BY item")));
    query.Bind(batch, from, static_cast<int>(report::ItemOutcome::kDeadLettered));
    std::vector<report::ItemRow> dead;
    while (dead.size() < max) {
      MUSTER_ASSIGN_OR_RETURN(const bool found, query.Step());
      if (!found) break;
      MUSTER_ASSIGN_OR_RETURN(dead.emplace_back(), ItemRowOf(query));
    }
    std::vector<uint64_t> items;
    for (const report::ItemRow& item : dead) items.push_back(item.index);
    MUSTER_ASSIGN_OR_RETURN(const auto retried, LoadRetriedItems(connection_, batch, items));
    for (report::ItemRow& item : dead) {
      const auto found = retried.find(item.index);
      if (found != retried.end()) item.retried_in = found->second;
    }
    return dead;
  }

  absl::StatusOr<std::map<uint64_t, uint64_t>> RetriedItems(
      uint64_t batch, absl::Span<const uint64_t> items) override {
    return LoadRetriedItems(connection_, batch, items);
  }

  absl::StatusOr<report::StoredReceipt> GetReceipt(uint64_t batch) override {
    MUSTER_RETURN_IF_ERROR(LoadProgress(connection_, batch).status());
    MUSTER_ASSIGN_OR_RETURN(Statement query,
                            connection_->Prepare("SELECT text, checksum FROM muster_receipt "
                                                 "WHERE batch = ? ORDER BY revision DESC LIMIT 1"));
    MUSTER_ASSIGN_OR_RETURN(const bool found, query.Bind(batch).Step());
    if (!found) return absl::NotFoundError(absl::StrCat("batch ", batch, " has no receipt yet"));
    return report::StoredReceipt{std::string(query.Text(0)), std::string(query.Text(1))};
  }

  absl::StatusOr<std::vector<base::OutputColumn>> OutputColumns(uint64_t batch) override {
    MUSTER_ASSIGN_OR_RETURN(const report::Progress progress, LoadProgress(connection_, batch));
    return LoadOutputColumns(connection_, progress.job, progress.job_revision);
  }

  absl::StatusOr<std::optional<report::OutputPosition>> ReadOutputs(
      uint64_t batch, report::OutputPosition from, size_t max_bytes,
      const std::function<void(base::OutputRecord)>& visit) override {
    return sqlite::ReadOutputs(connection_, batch, from, max_bytes, visit);
  }

 private:
  absl::StatusOr<Statement> PrepareRejections(uint64_t batch, absl::string_view where) {
    report::Progress retries;
    retries.batch = batch;
    MUSTER_RETURN_IF_ERROR(LoadRetries(connection_, &retries));
    const bool has_none = retries.retry_of == 0 && retries.retried_in.empty();
    return connection_->Prepare(absl::StrCat(has_none ? kRejections : kRetriedRejections, where));
  }

  absl::StatusOr<std::vector<GroupTable>> Tables(uint64_t batch) {
    MUSTER_ASSIGN_OR_RETURN(const report::Progress progress, LoadProgress(connection_, batch));
    return LoadGroupTables(connection_, progress.job, progress.job_revision);
  }

  std::unique_ptr<Connection> owned_;  // nullptr when the connection is another's
  Connection* connection_;
  const TakeBack take_back_;  // of owned_; null: it is closed
};

absl::StatusOr<std::unique_ptr<report::ReportReader>> ReadOver(
    std::unique_ptr<Connection> connection, const std::string& path, TakeBack take_back) {
  MUSTER_RETURN_IF_ERROR(connection->Execute("BEGIN"));
  // Also the first read, which fixes what this transaction sees.
  MUSTER_RETURN_IF_ERROR(base::Annotate(CheckSchema(connection.get()), path));
  return std::make_unique<SqliteReportReader>(std::move(connection), std::move(take_back));
}

}  // namespace

absl::StatusOr<std::unique_ptr<report::ReportReader>> OpenReader(const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<Connection> connection,
                          Connection::Open(path, OpenMode::kReadOnly));
  return ReadOver(std::move(connection), path, nullptr);
}

class ReaderPool::Idle {
 public:
  struct Taken {
    std::unique_ptr<Connection> connection;  // null: there was none
    uint64_t round;
  };

  Taken Take() ABSL_LOCKS_EXCLUDED(mu_) {
    base::MutexLock lock(&mu_);
    if (connections_.empty()) return {nullptr, round_};
    std::unique_ptr<Connection> last = std::move(connections_.back());
    connections_.pop_back();
    return {std::move(last), round_};
  }

  // Closes it, unless it was taken in this round and has its place.
  void Keep(std::unique_ptr<Connection> connection, uint64_t round) ABSL_LOCKS_EXCLUDED(mu_) {
    if (!connection->Execute("ROLLBACK").ok()) return;
    base::MutexLock lock(&mu_);
    if (round == round_ && connections_.size() < kMaxIdleReaders) {
      connections_.push_back(std::move(connection));
    }
  }

  void Clear() ABSL_LOCKS_EXCLUDED(mu_) {
    std::vector<std::unique_ptr<Connection>> closed;
    base::MutexLock lock(&mu_);
    closed.swap(connections_);
    ++round_;
  }

 private:
  base::Mutex mu_;
  std::vector<std::unique_ptr<Connection>> connections_ ABSL_GUARDED_BY(mu_);
  uint64_t round_ ABSL_GUARDED_BY(mu_) = 0;  // Clears so far
};

ReaderPool::ReaderPool(std::string path)
    : path_(std::move(path)), idle_(std::make_shared<Idle>()) {}

ReaderPool::~ReaderPool() { Clear(); }

void ReaderPool::Clear() { idle_->Clear(); }

absl::StatusOr<std::unique_ptr<report::ReportReader>> ReaderPool::Read() {
  Idle::Taken taken = idle_->Take();
  if (taken.connection == nullptr) {
    MUSTER_ASSIGN_OR_RETURN(taken.connection, Connection::Open(path_, OpenMode::kReadOnly));
  }
  return ReadOver(std::move(taken.connection), path_,
                  [idle = idle_, round = taken.round](std::unique_ptr<Connection> connection) {
                    idle->Keep(std::move(connection), round);
                  });
}

std::unique_ptr<report::ReportReader> ReaderOver(Connection* connection) {
  return std::make_unique<SqliteReportReader>(connection);
}

}  // namespace muster::report::sqlite
