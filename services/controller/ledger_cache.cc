// SPDX-License-Identifier: Apache-2.0
#include "services/controller/ledger_cache.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/in_parallel.h"
#include "muster/base/retry.h"
#include "muster/base/status.h"
#include "muster/job/job_file.h"
#include "muster/report/report_proto.h"
#include "services/controller/away_ledgers.h"

namespace muster::controller {

namespace {

constexpr size_t kItemsPerRead = 4096;
// Batches that are asked for at a time.
constexpr size_t kQuestionsAtATime = 8;

bool IsPowerOfTwo(uint64_t n) { return n != 0 && (n & (n - 1)) == 0; }

}  // namespace

absl::Status SetApart(uint64_t batch, const absl::Status& why) {
  if (why.ok() || base::IsTransient(why) || absl::IsCancelled(why)) return why;
  return absl::UnavailableError(
      absl::StrCat("batch ", batch, " cannot be counted: ", why.ToString()));
}

absl::Status CheckOwner(const ledger::Batch& batch, const report::Progress& counted) {
  if (batch.owner.empty() || counted.owner.empty() || batch.owner == counted.owner) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(
      absl::StrCat("the ledger of batch ", batch.number, " that answers is not its owner's"));
}

std::map<uint64_t, absl::Status> LedgerCache::Prepare(const std::set<uint64_t>& batches) {
  std::vector<uint64_t> unknown;
  std::copy_if(batches.begin(), batches.end(), std::back_inserter(unknown),
               [this](uint64_t batch) { return pages_.Peek(batch) == nullptr; });
  std::vector<Answers> answers(unknown.size());
  base::InParallel(unknown.size(), kQuestionsAtATime,
                   [&](size_t i) { answers[i] = Ask(unknown[i]); });
  std::map<uint64_t, absl::Status> failed;
  for (size_t i = 0; i < unknown.size(); ++i) {
    const absl::Status added = Add(unknown[i], std::move(answers[i])).status();
    if (!added.ok()) failed[unknown[i]] = added;
  }
  return failed;
}

absl::Status LedgerCache::Check(const report::CountedItem& item) {
  const absl::StatusOr<Page*> page = Open(item.batch);
  if (absl::IsNotFound(page.status())) {
    return absl::InvalidArgumentError(
        absl::StrCat("no initiator that is known here has batch ", item.batch));
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
  Page* const page = pages_.Find(progress.batch);
  if (page != nullptr) page->counted = progress.items();
}

std::optional<ledger::BatchView> LedgerCache::Sealed(uint64_t batch) const {
  const Page* const page = pages_.Peek(batch);
  return page == nullptr ? std::nullopt : page->sealed;
}

void LedgerCache::Forget(uint64_t batch) { pages_.Erase(batch); }

void LedgerCache::ForgetSealed(uint64_t batch) {
  Page* const page = pages_.Find(batch);
  if (page != nullptr) page->sealed.reset();
}

bool LedgerCache::LacksItems(uint64_t batch, uint64_t counted) const {
  const Page* const page = pages_.Peek(batch);
  return page != nullptr && counted < page->least_items;
}

void LedgerCache::NoteSealed(ledger::BatchView view, Page* page) {
  // Another initiator may have a batch of that number, and answer while the owner is away.
  if (!page->owner.empty() && view.batch.owner != page->owner) return;
  page->least_items = view.batch.items;
  if (view.batch.state != ledger::BatchState::kSealed) return;
  view.batch.job_definition.clear();
  view.batch.content.clear();
  view.items.clear();
  page->sealed = std::move(view);
}

absl::StatusOr<bool> LedgerCache::WouldComplete(uint64_t batch, uint64_t more) {
  const absl::StatusOr<Page*> page = Open(batch);
  if (absl::IsNotFound(page.status())) return SetApart(batch, page.status());
  MUSTER_RETURN_IF_ERROR(page.status());
  const uint64_t items = static_cast<uint64_t>((*page)->counted) + more;
  if (items < (*page)->least_items) return false;
  if ((*page)->sealed.has_value()) return true;
  // A hand may be looked at every few milliseconds, and an open batch may stay open for hours.
  if (std::exchange((*page)->looked_at, items) != items) (*page)->looks = 0;
  if (!IsPowerOfTwo(++(*page)->looks)) return false;
  absl::StatusOr<ledger::BatchView> view = ledger_->View(batch, 0);
  MUSTER_RETURN_IF_ERROR(SetApart(batch, view.status()));
  NoteSealed(*std::move(view), *page);
  return (*page)->sealed.has_value() && items >= (*page)->least_items;
}

void LedgerCache::AddTo(Page* page, absl::Span<const ledger::ItemBoundary> items) {
  for (const ledger::ItemBoundary& item : items) {
    page->items.push_back({item.content, item.transactions});
  }
}

absl::StatusOr<LedgerCache::Page*> LedgerCache::Open(uint64_t batch) {
  if (Page* const known = pages_.Find(batch); known != nullptr) return known;
  return Add(batch, Ask(batch));
}

LedgerCache::Answers LedgerCache::Ask(uint64_t batch) const {
  Answers answers;
  const absl::StatusOr<std::unique_ptr<report::ReportReader>> reader = report_->Read();
  answers.progress = reader.ok() ? (*reader)->GetProgress(batch) : reader.status();
  answers.view = ledger_->View(batch, kItemsPerRead);
  return answers;
}

absl::StatusOr<LedgerCache::Page*> LedgerCache::Add(uint64_t batch, Answers answers) {
  auto& [progress, view] = answers;
  if (absl::IsNotFound(view.status())) return view.status();
  MUSTER_RETURN_IF_ERROR(SetApart(batch, view.status()));
  const ledger::Batch* const recorded = &view->batch;
  if (absl::IsNotFound(progress.status())) {
    // The report may have been restored from an older copy: the initiator registers the batch
    // again. It registers no cancelled batch, not even one that was cancelled while no controller
    // was there; the results of its items would come again and again.
    if (recorded->state != ledger::BatchState::kCancelled) {
      return NotRegisteredYet(batch);
    }
    progress = Register(*recorded);
  }
  MUSTER_RETURN_IF_ERROR(progress.status());
  MUSTER_RETURN_IF_ERROR(CheckOwner(*recorded, *progress));
  Page* const page = pages_.FindOrAdd(batch).first;
  page->counted = progress->items();
  page->owner = progress->owner;
  AddTo(page, view->items);
  NoteSealed(*std::move(view), page);
  MakeRoom();
  return page;
}

void LedgerCache::MakeRoom() {
  size_t items = 0;
  for (const auto& [batch, page] : pages_) items += page.items.size();
  while (items > limits_.items && pages_.size() > 1) {
    items -= std::prev(pages_.end())->second.items.size();
    pages_.DropLeastRecent();
  }
}

absl::StatusOr<report::Progress> LedgerCache::Register(const ledger::Batch& batch) {
  const absl::StatusOr<job::JobDefinition> job = job::ParseJob(batch.job_definition, batch.job);
  MUSTER_RETURN_IF_ERROR(SetApart(batch.number, job.status()));
  absl::StatusOr<report::Progress> registered =
      report_->RegisterBatch(report::ShapeOf(batch.number, job->schema()));
  const absl::Status& status = registered.status();
  const bool is_refused = absl::IsInvalidArgument(status) || absl::IsFailedPrecondition(status) ||
                          absl::IsAlreadyExists(status);
  if (is_refused) return SetApart(batch.number, status);
  return registered;
}

absl::Status LedgerCache::ReadTo(uint64_t batch, uint64_t index, Page* page) {
  while (page->items.size() <= index) {
    const absl::StatusOr<std::vector<ledger::ItemBoundary>> more =
        ledger_->Items(batch, page->items.size(), kItemsPerRead);
    MUSTER_RETURN_IF_ERROR(SetApart(batch, more.status()));
    if (more->empty()) return absl::OkStatus();
    AddTo(page, *more);
    MakeRoom();
  }
  return absl::OkStatus();
}

}  // namespace muster::controller
