// SPDX-License-Identifier: Apache-2.0
#include "cli/batch/receipt_check.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "muster/base/status.h"
#include "muster/report/audit.h"

namespace muster::cli {
namespace {

// Item boundaries read at a time, and differences named before one gives up counting them.
constexpr size_t kPage = 1024;
constexpr size_t kMaxNamedDifferences = 100;

// Walks through the ledger's boundaries in step with the report's items, which come in order.
class LedgerWalk {
 public:
  LedgerWalk(uint64_t batch, ledger::BatchLedger* ledger) : batch_(batch), ledger_(ledger) {}

  // What is wrong with an item, or "".
  absl::StatusOr<std::string> Compare(const report::ItemRow& row) {
    if (row.index < first_ || row.index >= first_ + page_.size()) {
      first_ = row.index;
      MUSTER_ASSIGN_OR_RETURN(page_, ledger_->Items(batch_, first_, kPage));
      if (page_.empty()) return absl::StrCat("item ", row.index, " is not in the ledger");
    }
    const ledger::ItemBoundary& item = page_[row.index - first_];
    if (item.content != row.content) {
      return absl::StrCat("item ", row.index,
                          " was counted with another content than the ledger's");
    }
    if (item.transactions != row.transactions) {
      return absl::StrCat("item ", row.index, " was counted with ", row.transactions,
                          " transactions, the ledger has ", item.transactions);
    }
    return std::string();
  }

 private:
  const uint64_t batch_;
  ledger::BatchLedger* const ledger_;  // not owned
  uint64_t first_ = 0;
  std::vector<ledger::ItemBoundary> page_;
};

void CompareFact(absl::string_view name, absl::string_view receipt, absl::string_view ledger,
                 std::vector<std::string>* differences) {
  if (receipt == ledger) return;
  differences->push_back(
      absl::StrCat("the receipt says '", name, " ", receipt, "', the ledger '", ledger, "'"));
}

// The report's own rows show only that the receipt fits them: what was never counted left no row.
// That nothing is missing, only the ledger can say.
void CompareWithLedger(const report::Receipt& receipt, const ledger::Batch& batch,
                       std::vector<std::string>* differences) {
  CompareFact("job", receipt.job, batch.job, differences);
  CompareFact("job_revision", receipt.job_revision, batch.job_revision, differences);
  CompareFact("handler_version", receipt.handler_version, batch.handler_version, differences);
  CompareFact("items", absl::StrCat(receipt.items), absl::StrCat(batch.items), differences);
  CompareFact("transactions", absl::StrCat(receipt.transactions), absl::StrCat(batch.transactions),
              differences);
}

}  // namespace

absl::StatusOr<std::vector<std::string>> CheckReceipt(uint64_t batch, ledger::BatchLedger& ledger,
                                                      report::ReportReader& reader) {
  MUSTER_ASSIGN_OR_RETURN(report::Verification verification, report::VerifyReceipt(reader, batch));
  std::vector<std::string> differences = std::move(verification.differences);
  const absl::StatusOr<ledger::Batch> known = ledger.Get(batch);
  if (absl::IsNotFound(known.status())) {
    differences.push_back("the ledger does not know the batch");
    return differences;
  }
  MUSTER_RETURN_IF_ERROR(known.status());
  // A receipt that could not be read, or is another batch's, is a difference already.
  if (verification.receipt.batch == batch) {
    CompareWithLedger(verification.receipt, *known, &differences);
  }
  if (known->items_deleted) return differences;
  LedgerWalk walk(batch, &ledger);
  absl::Status failed;
  MUSTER_RETURN_IF_ERROR(reader.ForEachItem(batch, [&](const report::ItemRow& row) {
    if (!failed.ok() || differences.size() >= kMaxNamedDifferences) return;
    absl::StatusOr<std::string> difference = walk.Compare(row);
    if (!difference.ok()) {
      failed = difference.status();
    } else if (!difference->empty()) {
      differences.push_back(*std::move(difference));
    }
  }));
  MUSTER_RETURN_IF_ERROR(failed);
  return differences;
}

}  // namespace muster::cli
