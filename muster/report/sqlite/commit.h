// SPDX-License-Identifier: Apache-2.0

// CommitRun: one commit of the report, inside of the caller's transaction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "muster/report/counted_item.h"
#include "muster/report/report_store.h"
#include "muster/report/sqlite/connection.h"
#include "muster/report/sqlite/item_rows.h"
#include "muster/report/sqlite/schema.h"

namespace muster::report::sqlite {

// The prepared statements that add to the groups' tables, by the name of the table; some kilobytes
// each.
inline constexpr size_t kMaxAddRowStatements = 256;
using AddRowStatements = absl::flat_hash_map<std::string, Statement>;

// Not thread-safe; used once.
class CommitRun {
 public:
  // Nothing is owned; all must outlive the run. `now`: when the items are counted.
  CommitRun(Connection* connection, ItemRows* items, AddRowStatements* add_row,
            const report::CommitRequest* request, absl::Time now);

  // After an error the transaction must be rolled back.
  absl::StatusOr<report::CommitSummary> Run();

 private:
  struct Batch {
    report::Progress progress;
    std::vector<GroupTable> tables;
    std::vector<report::GroupShape> shapes;  // of the tables
    std::vector<base::OutputColumn> outputs;
  };
  using Batches = std::map<uint64_t, Batch>;
  // The rows to add, by batch and position of the group.
  using Mergers = std::map<std::pair<uint64_t, size_t>, report::RowMerger>;

  absl::Status Fence();
  absl::Status LoadBatches();
  absl::Status CountAll();
  // An item that failed alone is counted as given up.
  absl::Status CountAlone(size_t i);
  // Counts items [first, first + items.size()) of the request. OutOfRange: a sum overflows; what
  // was done so far is to be rolled back.
  absl::Status Count(absl::Span<const report::CountedItem> items, size_t first);
  absl::StatusOr<report::ItemVerdict> CountItem(const report::CountedItem& item, Mergers* mergers);
  absl::StatusOr<report::ItemVerdict> CountRepeat(const report::CountedItem& item, Batch* batch,
                                                  Mergers* mergers);
  // `item` must outlive the mergers: they point to its keys.
  absl::Status Merge(const report::CountedItem& item, Batch* batch, Mergers* mergers);
  absl::Status AddRows(const Mergers& mergers);
  absl::Status AddRowsOf(uint64_t batch, const GroupTable& table, const report::RowMerger& merger);
  absl::Status StoreBatches();
  // Runs `work` under a savepoint. When it answers OutOfRange, database, totals and verdicts are as
  // they were before.
  template <typename Work>
  absl::Status UnderSavepoint(Work work);

  Connection* const connection_;
  ItemRows* const items_;
  AddRowStatements* const add_row_;
  const report::CommitRequest& request_;
  const absl::Time now_;
  Batches batches_;
  std::vector<report::ItemVerdict> verdicts_;
};

}  // namespace muster::report::sqlite
