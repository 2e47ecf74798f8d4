#include "services/controller/batch_book.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"

namespace muster::controller {
namespace {

// Batches that are remembered at a time, at 24 bytes per item. A page that is torn out is read
// again.
constexpr size_t kMaxPages = 64;
constexpr size_t kItemsPerRead = 4096;

}  // namespace

LedgerCache::LedgerCache(ledger::BatchRecords* ledger, report::ReportStore* report)
    : ledger_(ledger), report_(report) {}

absl::Status LedgerCache::Check(const report::CountedItem& item) {
  const absl::StatusOr<Page*> page = Open(item.batch);
  if (absl::IsNotFound(page.status())) {
    return absl::InvalidArgumentError(absl::StrCat("nobody here knows of batch ", item.batch));
  }
  MUSTER_RETURN_IF_ERROR(page.status());
  MUSTER_RETURN_IF_ERROR(ReadTo(item.batch, item.index, *page));
  if (item.index >= (*page)->items.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("batch ", item.batch, " has no item ", item.index));
  }
  const Item& recorded = (*page)->items[item.index];
  if (recorded.content == item.content && recorded.transactions == item.transactions) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("item ", item.batch, "/", item.index,
                                                 " was made of another slice than its ledger has"));
}

void LedgerCache::Note(const report::Progress& progress) {
  const auto page = pages_.find(progress.batch);
  if (page != pages_.end()) page->second.counted = progress.items();
}

absl::StatusOr<bool> LedgerCache::WouldComplete(uint64_t batch, uint64_t more) {
  MUSTER_ASSIGN_OR_RETURN(const Page* page, Open(batch));
  MUSTER_ASSIGN_OR_RETURN(const ledger::Batch recorded, ledger_->Get(batch));
  return recorded.state == ledger::BatchState::kSealed &&
         static_cast<uint64_t>(page->counted) + more >= recorded.items;
}

absl::StatusOr<LedgerCache::Page*> LedgerCache::Open(uint64_t batch) {
  const auto known = pages_.find(batch);
  if (known != pages_.end()) return &known->second;
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<report::ReportReader> reader, report_->Read());
  const absl::StatusOr<report::Progress> progress = reader->GetProgress(batch);
  MUSTER_RETURN_IF_ERROR(ledger_->Get(batch).status());
  if (absl::IsNotFound(progress.status())) {
    // Its initiator registers it again: the report may be an older one than it was.
    return absl::UnavailableError(absl::StrCat("the report does not know batch ", batch, " yet"));
  }
  MUSTER_RETURN_IF_ERROR(progress.status());
  if (pages_.size() >= kMaxPages) pages_.erase(pages_.begin());  // the oldest batch
  Page& page = pages_[batch];
  page.counted = progress->items();
  return &page;
}

absl::Status LedgerCache::ReadTo(uint64_t batch, uint64_t index, Page* page) {
  while (page->items.size() <= index) {
    MUSTER_ASSIGN_OR_RETURN(const std::vector<ledger::ItemBoundary> more,
                            ledger_->Items(batch, page->items.size(), kItemsPerRead));
    if (more.empty()) return absl::OkStatus();
    for (const ledger::ItemBoundary& item : more) {
      page->items.push_back({item.content, item.transactions});
    }
  }
  return absl::OkStatus();
}

}  // namespace muster::controller
